//! The rows of `kubectl get rkcl -w`: status, substatus and partition, one row per write.
//!
//! Each operation has a documented sequence of rows, and each row is written when its stage begins. A stage may take no
//! time, and an operator may crash between two writes; clients that watch must still see every row. So the next row
//! follows from the row that is stored and from how far the work is: the sequence is walked one row per write, and the
//! work of a stage waits for its row.
//!
//! A row never goes back while an operation runs: a pod that vanishes in the middle does not undo the progress that was
//! reported. Only an edit that [restarts](Progress::Running::restarted) the operation goes back.

use candor_api::RedkeyClusterStatus;
use candor_api::redkey::status::{ClusterStatus, ClusterSubstatus, Substatus};

/// The three cells that an operation writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// None before the first write.
    pub status: Option<ClusterStatus>,
    /// The stage.
    pub substatus: Option<ClusterSubstatus>,
    /// The ordinal that a slow upgrade has reached.
    pub partition: Option<u32>,
}

impl Row {
    /// A status without a substatus.
    pub const fn bare(status: ClusterStatus) -> Self {
        Self {
            status: Some(status),
            substatus: None,
            partition: None,
        }
    }

    const fn stage(status: ClusterStatus, substatus: ClusterSubstatus, partition: Option<u32>) -> Self {
        Self {
            status: Some(status),
            substatus: Some(substatus),
            partition,
        }
    }

    /// The row that is stored. A value that no row has is read as none.
    pub fn of(status: &RedkeyClusterStatus) -> Self {
        Self {
            status: ClusterStatus::parse(&status.status),
            substatus: ClusterSubstatus::parse(&status.substatus.status),
            partition: status.substatus.upgrading_partition.parse().ok(),
        }
    }

    /// Writes the row into a status.
    pub fn write(self, status: &mut RedkeyClusterStatus) {
        status.status = self.status.map(|one| one.name().to_owned()).unwrap_or_default();
        status.substatus = Substatus {
            status: self.substatus.map(|one| one.name().to_owned()).unwrap_or_default(),
            upgrading_partition: self.partition.map(|one| one.to_string()).unwrap_or_default(),
        };
    }
}

/// The current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No operation runs: Ready, Configuring, Initializing, Error or Maintenance.
    Steady(ClusterStatus),
    /// Nothing is known: the row stays.
    Unchanged,
    /// An operation runs.
    Running {
        /// Which, and how far it is.
        work: Work,
        /// An edit made it begin again: rows may go back.
        restarted: bool,
    },
}

/// An operation and how far it is: the stage that the observed state calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// From nothing.
    Create(Creating),
    /// More servers, without their keys.
    FastScaleUp(Recreating),
    /// More servers, with every key.
    SlowScaleUp(Growing),
    /// Fewer servers, without their keys.
    FastScaleDown(Recreating),
    /// Fewer servers, with every key.
    SlowScaleDown(Shrinking),
    /// Other servers, without their keys.
    FastUpgrade(Recreating),
    /// Other servers, with every key.
    SlowUpgrade {
        /// Servers of the cluster: the extra one has this ordinal.
        nodes: u32,
        /// How far.
        stage: Upgrading,
    },
}

/// The stages of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creating {
    /// Pods and Robin start.
    Starting,
    /// Robin forms the cluster.
    Forming,
    /// Everything is as desired.
    Done,
}

/// The stages of every fast operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recreating {
    /// The `StatefulSet` is recreated.
    Pods,
    /// Robin forms the cluster.
    Forming,
    /// Everything is as desired.
    Done,
}

/// The stages of a slow scale-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growing {
    /// New pods start.
    Pods,
    /// Slots move to new primaries.
    Slots,
    /// The balance is checked.
    Balance,
    /// Everything is as desired.
    Done,
}

/// The stages of a slow scale-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrinking {
    /// Slots leave.
    Slots,
    /// Pods leave.
    Pods,
    /// Everything is as desired.
    Done,
}

/// The stages of a slow upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrading {
    /// The extra server joins.
    Extra,
    /// The server at this ordinal is emptied.
    Emptying(u32),
    /// The pod at this ordinal is recreated and rejoins.
    Rolling(u32),
    /// The extra server is emptied.
    EmptyingExtra,
    /// The extra server is removed.
    RemovingExtra,
    /// Everything is as desired.
    Done,
}

impl Work {
    /// Every row of the operation in its order, without the Ready at its end.
    pub fn rows(self) -> Vec<Row> {
        use ClusterStatus as S;
        use ClusterSubstatus as Sub;
        let stages = |status: S, all: &[Sub]| {
            let rows = all.iter().map(|one| Row::stage(status, *one, None));
            [Row::bare(status)].into_iter().chain(rows).collect()
        };
        match self {
            Self::Create(_) => vec![Row::bare(S::Initializing), Row::bare(S::Configuring)],
            Self::FastScaleUp(_) => stages(S::ScalingUp, &[Sub::FastScaling, Sub::EndingFastScaling]),
            Self::FastScaleDown(_) => stages(S::ScalingDown, &[Sub::FastScaling, Sub::EndingFastScaling]),
            Self::FastUpgrade(_) => stages(S::Upgrading, &[Sub::FastUpgrading, Sub::EndingFastUpgrading]),
            Self::SlowScaleUp(_) => stages(S::ScalingUp, &[Sub::PodScaling, Sub::RobinScaling, Sub::EndingScaling]),
            Self::SlowScaleDown(_) => stages(S::ScalingDown, &[Sub::RobinScaling, Sub::PodScaling]),
            Self::SlowUpgrade { nodes, .. } => {
                let mut rows: Vec<Row> = stages(S::Upgrading, &[Sub::ScalingUp, Sub::SlowUpgrading]);
                rows.extend((0..=nodes).rev().flat_map(|partition| {
                    [Sub::SlowUpgrading, Sub::RollingConfig].map(|one| Row::stage(S::Upgrading, one, Some(partition)))
                }));
                let ending = [Sub::EndingSlowUpgrading, Sub::ScalingDown];
                rows.extend(ending.map(|one| Row::stage(S::Upgrading, one, Some(0))));
                rows
            }
        }
    }

    /// The row of the stage that is under way; one past the last row when everything is done.
    fn position(self) -> usize {
        let recreating = |stage| match stage {
            Recreating::Pods => 1,
            Recreating::Forming => 2,
            Recreating::Done => 3,
        };
        match self {
            Self::Create(Creating::Starting) => 0,
            Self::Create(Creating::Forming) => 1,
            Self::Create(Creating::Done) => 2,
            Self::FastScaleUp(stage) | Self::FastScaleDown(stage) | Self::FastUpgrade(stage) => recreating(stage),
            Self::SlowScaleUp(stage) => match stage {
                Growing::Pods => 1,
                Growing::Slots => 2,
                Growing::Balance => 3,
                Growing::Done => 4,
            },
            Self::SlowScaleDown(stage) => match stage {
                Shrinking::Slots => 1,
                Shrinking::Pods => 2,
                Shrinking::Done => 3,
            },
            Self::SlowUpgrade { nodes, stage } => {
                let nodes = usize::try_from(nodes).unwrap_or(usize::MAX / 4);
                // Bare, ScalingUp and SlowUpgrading come before the first partition, two rows each for the partitions.
                let partition = |ordinal: u32| {
                    let ordinal = usize::try_from(ordinal).unwrap_or(usize::MAX / 4).min(nodes);
                    3 + 2 * (nodes - ordinal)
                };
                let ending = 3 + 2 * (nodes + 1);
                match stage {
                    Upgrading::Extra => 1,
                    Upgrading::Emptying(ordinal) => partition(ordinal),
                    Upgrading::Rolling(ordinal) => partition(ordinal) + 1,
                    Upgrading::EmptyingExtra => ending,
                    Upgrading::RemovingExtra => ending + 1,
                    Upgrading::Done => ending + 2,
                }
            }
        }
    }
}

/// The row to write after `previous`. When it equals `previous`, the row of the stage that is under way is stored, and
/// its work may be done; else its work waits for a later row.
pub fn next(previous: Row, progress: Progress) -> Row {
    match progress {
        // The substatus and partition are kept: they show where an operation stopped, and it continues from there.
        Progress::Steady(status @ (ClusterStatus::Error | ClusterStatus::Maintenance)) => Row {
            status: Some(status),
            ..previous
        },
        Progress::Steady(status) => Row::bare(status),
        Progress::Unchanged => previous,
        Progress::Running { work, restarted } => {
            let rows = work.rows();
            let row = |index: usize| rows.get(index).copied().unwrap_or(Row::bare(ClusterStatus::Ready));
            let goal = work.position();
            let stopped = matches!(previous.status, Some(ClusterStatus::Error | ClusterStatus::Maintenance));
            let reached = rows.iter().position(|one| {
                let same_stage = (one.substatus, one.partition) == (previous.substatus, previous.partition);
                same_stage && (one.status == previous.status || (stopped && one.substatus.is_some()))
            });
            match reached {
                None => row(0),
                Some(index) if stopped => row(index),
                Some(index) if index < goal => row(index + 1),
                Some(_) if restarted => row(goal),
                Some(index) => row(index),
            }
        }
    }
}

/// Whether the work of a stage may be done: its row is stored.
pub fn admits(stored: Row, work: Work) -> bool {
    let rows = work.rows();
    rows.iter()
        .position(|row| *row == stored)
        .is_some_and(|index| index >= work.position())
}
