//! Robin killed whenever slots have moved, alone and together with the operator: the operation ends as undisturbed, and
//! no key is lost.

use std::time::{Duration, Instant};

use candor_operator::Settings;
use kube_sandbox::faults::Faults;

use crate::chapter::Scenario;
use crate::life::Life;
use crate::redkey::Operation;
use crate::support::Stage;
use crate::support::redkey::Redkey;
use crate::{Trying, trying};

/// Longer than any of these operations takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(150);
/// When a killed Robin starts again.
const BACK: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    Robin,
    RobinAndOperator,
}

/// Kills them each time the owners of slots have changed, up to a number of times.
async fn killed(operation: Operation, victims: Victims) {
    let most = if trying() == Trying::All { 100 } else { 8 };
    let stage = Stage::set().await;
    operation.prepare(&stage).await;
    let witness = operation.record(&stage).await;
    let cluster = Redkey(&stage);
    let operator = || Life::start(stage.client(), Faults::seeded(1), Settings::default());
    let mut life = operator();
    operation.begin(&stage).await;
    let (begun, mut kills, mut owners) = (Instant::now(), 0, cluster.owners());
    while !operation.is_over(&stage).await {
        if begun.elapsed() > PATIENCE {
            let status = serde_json::to_string_pretty(&cluster.status().await).unwrap();
            panic!("{operation:?}, {victims:?}: not over after {kills} kills: {status}");
        }
        let now = cluster.owners();
        if now != owners && kills < most {
            owners = now;
            if let Some(robin) = cluster.robin().await {
                kills += usize::from(stage.pods.kill("default", &robin, BACK));
            }
            if victims == Victims::RobinAndOperator {
                drop(life);
                life = operator();
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let complaints = operation.complaints(&stage, witness).await;
    assert!(
        complaints.is_empty(),
        "{operation:?}, {victims:?}, {kills} kills: {complaints:?}"
    );
    assert!(kills >= 4, "{operation:?}: only {kills} kills");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_is_killed_at_slot_turns_while_scaling_up() {
    killed(Operation::UpSlow, Victims::Robin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_and_the_operator_are_killed_at_slot_turns_while_scaling_up() {
    killed(Operation::UpSlow, Victims::RobinAndOperator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_and_the_operator_are_killed_at_slot_turns_while_scaling_down() {
    killed(Operation::DownSlow, Victims::RobinAndOperator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_is_killed_at_slot_turns_during_a_slow_upgrade() {
    killed(Operation::UpgradeSlow, Victims::Robin).await;
}
