//! The operations of a `RedkeyCluster` under faults, with its Robin: the same final state as undisturbed, the rows of
//! the contract in their order, and no key lost where none may be.

use candor_api::RedkeyCluster;
use candor_operator::Settings;
use kube_sandbox::faults::Faults;
use serde_json::{Value, json};

use crate::chapter::Scenario;
use crate::chapters::disturbed;
use crate::life::Life;
use crate::support::Stage;
use crate::support::redkey::{NAME, Redkey, Rows};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    UpFast,
    UpSlow,
    DownFast,
    DownSlow,
    UpgradeFast,
    UpgradeSlow,
    Sleep,
}

impl Operation {
    fn is_fast(self) -> bool {
        matches!(self, Self::UpFast | Self::DownFast | Self::UpgradeFast)
    }

    fn spec(self) -> Value {
        let primaries = if matches!(self, Self::DownFast | Self::DownSlow) {
            3
        } else {
            2
        };
        json!({"primaries": primaries, "ephemeral": true, "purgeKeysOnRebalance": self.is_fast(),
            "image": "redis:8.0"})
    }

    /// What the user changes.
    fn change(self) -> Value {
        match self {
            Self::Create => json!({}),
            Self::UpFast | Self::UpSlow => json!({"primaries": 3}),
            Self::DownFast | Self::DownSlow => json!({"primaries": 2}),
            Self::UpgradeFast | Self::UpgradeSlow => json!({"image": "redis:8.0.6"}),
            Self::Sleep => json!({"primaries": 0}),
        }
    }

    /// The rows of the contract's part 4, as `status/substatus/partition`.
    fn rows(self) -> Vec<&'static str> {
        match self {
            Self::Create => vec!["", "Initializing", "Configuring", "Ready"],
            Self::UpFast => vec![
                "Ready",
                "ScalingUp",
                "ScalingUp/FastScaling",
                "ScalingUp/EndingFastScaling",
                "Ready",
            ],
            Self::UpSlow => vec![
                "Ready",
                "ScalingUp",
                "ScalingUp/PodScaling",
                "ScalingUp/RobinScaling",
                "ScalingUp/EndingScaling",
                "Ready",
            ],
            Self::DownFast => vec![
                "Ready",
                "ScalingDown",
                "ScalingDown/FastScaling",
                "ScalingDown/EndingFastScaling",
                "Ready",
            ],
            Self::DownSlow => vec![
                "Ready",
                "ScalingDown",
                "ScalingDown/RobinScaling",
                "ScalingDown/PodScaling",
                "Ready",
            ],
            Self::UpgradeFast => vec![
                "Ready",
                "Upgrading",
                "Upgrading/FastUpgrading",
                "Upgrading/EndingFastUpgrading",
                "Ready",
            ],
            Self::UpgradeSlow => vec![
                "Ready",
                "Upgrading",
                "Upgrading/ScalingUp",
                "Upgrading/SlowUpgrading",
                "Upgrading/SlowUpgrading/2",
                "Upgrading/RollingConfig/2",
                "Upgrading/SlowUpgrading/1",
                "Upgrading/RollingConfig/1",
                "Upgrading/SlowUpgrading/0",
                "Upgrading/RollingConfig/0",
                "Upgrading/EndingSlowUpgrading/0",
                "Upgrading/ScalingDown/0",
                "Ready",
            ],
            Self::Sleep => vec!["Ready", "ScalingDown", "Ready"],
        }
    }
}

/// The rows that a watch has shown, and the keys before.
pub struct Recorded {
    rows: Rows,
    keys: u64,
}

impl Scenario for Operation {
    type Cluster = RedkeyCluster;
    type Witness = Recorded;

    fn number(self) -> usize {
        10 + self as usize
    }

    fn name(self) -> &'static str {
        NAME
    }

    fn is_long(self) -> bool {
        // Thousands of slots move one by one.
        matches!(self, Self::UpSlow | Self::DownSlow | Self::UpgradeSlow)
    }

    async fn prepare(self, stage: &Stage) {
        if self == Self::Create {
            return;
        }
        let life = Life::start(stage.client(), Faults::seeded(1), Settings::default());
        let cluster = Redkey(stage);
        cluster.create(self.spec()).await;
        cluster.ready().await;
        cluster.write_keys().await;
        life.end().await;
    }

    async fn record(self, stage: &Stage) -> Recorded {
        Recorded {
            rows: Rows::record(stage),
            keys: Redkey(stage).keys(),
        }
    }

    async fn begin(self, stage: &Stage) {
        if self == Self::Create {
            Redkey(stage).create(self.spec()).await;
        } else {
            Redkey(stage).change(self.change()).await;
        }
    }

    async fn is_over(self, stage: &Stage) -> bool {
        Redkey(stage).is_ready().await
    }

    async fn complaints(self, stage: &Stage, witness: Recorded) -> Vec<String> {
        let rows = witness.rows.shown();
        let expected = self.rows();
        let mut rest = expected.iter();
        let in_order = rows.iter().all(|row| rest.any(|one| one == row));
        let mut wrong = Vec::new();
        if !in_order {
            wrong.push(format!("the rows are {rows:?}, not a part of {expected:?}"));
        }
        let (before, after) = (witness.keys, Redkey(stage).keys());
        let desired = if self.is_fast() || self == Self::Sleep {
            0
        } else {
            before
        };
        if after != desired {
            wrong.push(format!("{after} keys are left of {before}, not {desired}"));
        }
        wrong
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_created() {
    disturbed(Operation::Create).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_up_fast() {
    disturbed(Operation::UpFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_up_slowly() {
    disturbed(Operation::UpSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_down_fast() {
    disturbed(Operation::DownFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_down_slowly() {
    disturbed(Operation::DownSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_upgraded_fast() {
    disturbed(Operation::UpgradeFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_upgraded_slowly() {
    disturbed(Operation::UpgradeSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_put_to_sleep() {
    disturbed(Operation::Sleep).await;
}
