//! The rows of `kubectl get rkcl -w`, cell by cell, as the contract defines them. Also covers an operator that crashes
//! between any two rows, work that is faster than the rows, and a spec that changes in the middle.

use candor_api::RedkeyClusterStatus;
use candor_api::redkey::status::ClusterStatus;
use candor_engine::kinds::redkey::rows::{
    Creating, Growing, Progress, Recreating, Row, Shrinking, Upgrading, Work, admits, next,
};
use proptest::prelude::*;

fn running(work: Work) -> Progress {
    Progress::Running { work, restarted: false }
}

/// A row as the table shows it.
fn cells(row: Row) -> String {
    let mut status = RedkeyClusterStatus::default();
    row.write(&mut status);
    assert_eq!(Row::of(&status), row, "what is written is what is read");
    let mut text = status.status;
    if !status.substatus.status.is_empty() {
        text = format!("{text}/{}", status.substatus.status);
    }
    if !status.substatus.upgrading_partition.is_empty() {
        text = format!("{text} {}", status.substatus.upgrading_partition);
    }
    text
}

/// Every row that is written during these stages, one write at a time, each computed from the stored row.
fn watched(mut stored: Row, stages: &[Work]) -> (Row, Vec<String>) {
    let mut rows = Vec::new();
    for work in stages {
        loop {
            let row = next(stored, running(*work));
            if row == stored {
                break;
            }
            rows.push(cells(row));
            stored = row;
            if row == Row::bare(ClusterStatus::Ready) {
                break;
            }
        }
    }
    (stored, rows)
}

const READY: Row = Row::bare(ClusterStatus::Ready);

/// The operations of the contract's table, each with its stages and its expected rows.
fn table() -> Vec<(&'static str, Row, Vec<Work>, Vec<&'static str>)> {
    let recreating = [Recreating::Pods, Recreating::Forming, Recreating::Done];
    let upgrade = |stage| Work::SlowUpgrade { nodes: 3, stage };
    let mut slow = vec![upgrade(Upgrading::Extra)];
    for partition in (0..=3).rev() {
        slow.extend([
            upgrade(Upgrading::Emptying(partition)),
            upgrade(Upgrading::Rolling(partition)),
        ]);
    }
    slow.extend([Upgrading::EmptyingExtra, Upgrading::RemovingExtra, Upgrading::Done].map(upgrade));
    vec![
        (
            "create",
            Row::default(),
            [Creating::Starting, Creating::Forming, Creating::Done]
                .map(Work::Create)
                .to_vec(),
            vec!["Initializing", "Configuring", "Ready"],
        ),
        (
            "up fast",
            READY,
            recreating.map(Work::FastScaleUp).to_vec(),
            vec![
                "ScalingUp",
                "ScalingUp/FastScaling",
                "ScalingUp/EndingFastScaling",
                "Ready",
            ],
        ),
        (
            "up slow",
            READY,
            [Growing::Pods, Growing::Slots, Growing::Balance, Growing::Done]
                .map(Work::SlowScaleUp)
                .to_vec(),
            vec![
                "ScalingUp",
                "ScalingUp/PodScaling",
                "ScalingUp/RobinScaling",
                "ScalingUp/EndingScaling",
                "Ready",
            ],
        ),
        (
            "down fast",
            READY,
            recreating.map(Work::FastScaleDown).to_vec(),
            vec![
                "ScalingDown",
                "ScalingDown/FastScaling",
                "ScalingDown/EndingFastScaling",
                "Ready",
            ],
        ),
        (
            "down slow",
            READY,
            [Shrinking::Slots, Shrinking::Pods, Shrinking::Done]
                .map(Work::SlowScaleDown)
                .to_vec(),
            vec![
                "ScalingDown",
                "ScalingDown/RobinScaling",
                "ScalingDown/PodScaling",
                "Ready",
            ],
        ),
        (
            "upg fast",
            READY,
            recreating.map(Work::FastUpgrade).to_vec(),
            vec![
                "Upgrading",
                "Upgrading/FastUpgrading",
                "Upgrading/EndingFastUpgrading",
                "Ready",
            ],
        ),
        (
            "upg slow",
            READY,
            slow,
            vec![
                "Upgrading",
                "Upgrading/ScalingUp",
                "Upgrading/SlowUpgrading",
                "Upgrading/SlowUpgrading 3",
                "Upgrading/RollingConfig 3",
                "Upgrading/SlowUpgrading 2",
                "Upgrading/RollingConfig 2",
                "Upgrading/SlowUpgrading 1",
                "Upgrading/RollingConfig 1",
                "Upgrading/SlowUpgrading 0",
                "Upgrading/RollingConfig 0",
                "Upgrading/EndingSlowUpgrading 0",
                "Upgrading/ScalingDown 0",
                "Ready",
            ],
        ),
    ]
}

#[test]
fn every_operation_shows_the_rows_of_the_contract_cell_by_cell() {
    for (name, before, stages, rows) in table() {
        assert_eq!(watched(before, &stages).1, rows, "{name}");
    }
}

#[test]
fn work_that_is_done_before_its_rows_are_written_skips_none_of_them() {
    for (name, before, stages, rows) in table() {
        let done = *stages.last().unwrap();
        assert_eq!(watched(before, &[done]).1, rows, "{name}");
    }
}

#[test]
fn the_work_of_a_stage_waits_for_its_row() {
    for (name, before, stages, _) in table() {
        let mut stored = before;
        for work in stages {
            while !admits(stored, work) {
                let row = next(stored, running(work));
                if row == READY {
                    break;
                }
                assert_ne!(row, stored, "{name}: {work:?} is never admitted");
                stored = row;
            }
        }
    }
}

#[test]
fn one_edit_of_topology_and_image_shows_both_operations_and_one_ready() {
    let scaled = [Growing::Pods, Growing::Slots, Growing::Balance].map(Work::SlowScaleUp);
    let (stored, _) = watched(READY, &scaled);
    let upgraded = [Recreating::Pods, Recreating::Forming, Recreating::Done].map(Work::FastUpgrade);
    assert_eq!(
        watched(stored, &upgraded).1,
        [
            "Upgrading",
            "Upgrading/FastUpgrading",
            "Upgrading/EndingFastUpgrading",
            "Ready"
        ]
    );
}

#[test]
fn an_edit_that_turns_the_direction_begins_with_the_bare_status() {
    let (stored, _) = watched(READY, &[Work::SlowScaleUp(Growing::Slots)]);
    assert_eq!(cells(stored), "ScalingUp/RobinScaling");
    let down = [Shrinking::Slots, Shrinking::Pods, Shrinking::Done].map(Work::SlowScaleDown);
    assert_eq!(
        watched(stored, &down).1,
        [
            "ScalingDown",
            "ScalingDown/RobinScaling",
            "ScalingDown/PodScaling",
            "Ready"
        ]
    );
}

#[test]
fn a_new_image_restarts_the_upgrade_at_the_last_partition() {
    let at = |stage| Work::SlowUpgrade { nodes: 3, stage };
    let (stored, _) = watched(READY, &[at(Upgrading::Rolling(2))]);
    let again = Progress::Running {
        work: at(Upgrading::Emptying(3)),
        restarted: true,
    };
    let row = next(stored, again);
    assert_eq!(cells(row), "Upgrading/SlowUpgrading 3");
    assert_eq!(next(row, again), row, "it goes back once");
}

#[test]
fn a_restarted_scaling_goes_back_to_its_pods() {
    let (stored, _) = watched(READY, &[Work::SlowScaleUp(Growing::Slots)]);
    let again = Progress::Running {
        work: Work::SlowScaleUp(Growing::Pods),
        restarted: true,
    };
    assert_eq!(cells(next(stored, again)), "ScalingUp/PodScaling");
}

#[test]
fn an_operation_that_stopped_continues_in_the_stage_where_it_stopped() {
    let at = |stage| Work::SlowUpgrade { nodes: 3, stage };
    for stop in [ClusterStatus::Error, ClusterStatus::Maintenance] {
        let (stored, _) = watched(READY, &[at(Upgrading::Rolling(1))]);
        let stopped = next(stored, Progress::Steady(stop));
        assert_eq!(cells(stopped), format!("{stop}/RollingConfig 1"));
        assert_eq!(next(stopped, Progress::Steady(stop)), stopped);
        let (_, rows) = watched(stopped, &[at(Upgrading::Emptying(0))]);
        assert_eq!(rows, ["Upgrading/RollingConfig 1", "Upgrading/SlowUpgrading 0"]);
    }
}

#[test]
fn a_ready_cluster_that_needs_a_meet_is_configuring_and_ready_again() {
    let configuring = next(READY, Progress::Steady(ClusterStatus::Configuring));
    assert_eq!(cells(configuring), "Configuring");
    assert_eq!(next(configuring, Progress::Steady(ClusterStatus::Ready)), READY);
}

#[test]
fn the_row_of_another_operator_is_continued() {
    let mut theirs = RedkeyClusterStatus {
        status: "Upgrading".to_owned(),
        ..RedkeyClusterStatus::default()
    };
    theirs.substatus.status = "Resharding".to_owned();
    theirs.substatus.upgrading_partition = "2".to_owned();
    let work = Work::SlowUpgrade {
        nodes: 3,
        stage: Upgrading::Rolling(2),
    };
    assert_eq!(
        cells(next(Row::of(&theirs), running(work))),
        "Upgrading/RollingConfig 2"
    );
}

#[test]
fn a_manually_edited_status_does_not_derail_an_operation() {
    let mut edited = RedkeyClusterStatus {
        status: "Fine".to_owned(),
        ..RedkeyClusterStatus::default()
    };
    edited.substatus.status = "Thanks".to_owned();
    let work = Work::FastScaleUp(Recreating::Forming);
    assert_eq!(cells(next(Row::of(&edited), running(work))), "ScalingUp");
}

fn is_subsequence(rows: &[Row], of: &[Row]) -> bool {
    let mut rest = of.iter();
    rows.iter().all(|row| rest.any(|one| one == row))
}

proptest! {
    /// Whatever stage is observed in each reconcile, the rows stay a subsequence of the documented one.
    #[test]
    fn rows_stay_a_subsequence_whatever_is_observed(
        operation in 0..7_usize,
        observed in prop::collection::vec(0..12_usize, 1..60),
        fresh_status in any::<bool>(),
    ) {
        let (_, before, stages, _) = table().remove(operation);
        let mut stored = if fresh_status { Row::default() } else { before };
        let mut rows = Vec::new();
        for index in observed {
            let work = stages[index % stages.len()];
            let row = next(stored, running(work));
            if row != stored {
                rows.push(row);
                stored = row;
            }
            if stored == READY {
                break;
            }
        }
        let documented: Vec<Row> = stages[0].rows().into_iter().chain([READY]).collect();
        prop_assert!(is_subsequence(&rows, &documented), "{rows:?}");
        // One row per write, none omitted.
        prop_assert_eq!(&rows[..], &documented[..rows.len()]);
        // Despite any disturbance, the operation ends.
        let (end, _) = watched(stored, &stages);
        prop_assert_eq!(end, READY);
    }

    /// A slow upgrade of any size counts down to partition 0.
    #[test]
    fn a_slow_upgrade_has_two_rows_per_ordinal(nodes in 0..40_u32) {
        let work = |stage| Work::SlowUpgrade { nodes, stage };
        let (end, rows) = watched(READY, &[work(Upgrading::Done)]);
        prop_assert_eq!(end, READY);
        prop_assert_eq!(u32::try_from(rows.len()).unwrap(), 3 + 2 * (nodes + 1) + 2 + 1);
        for ordinal in 0..=nodes {
            let (stored, _) = watched(READY, &[work(Upgrading::Rolling(ordinal))]);
            prop_assert_eq!(stored.partition, Some(ordinal));
        }
    }
}
