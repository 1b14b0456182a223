//! Only one of two operators acts, and a healthy cluster costs no API requests.

use std::time::{Duration, Instant};

use candor_operator::runtime::lease::{Keeper, Leadership, LeaseError, Timing};
use candor_operator::{LeaseSettings, Settings};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_sandbox::Sandbox;
use kube_sandbox::faults::{Fault, Faults, RequestInfo, Rule, Verb};
use serde_json::json;
use tokio::task::JoinHandle;
use tower::Layer;

use crate::life::Life;
use crate::support::{Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(90);

fn with_lease(client: Client, identity: &str) -> Settings {
    let timing = Timing {
        // An operator that the test host stalls for this long loses its lease and exits.
        duration: Duration::from_secs(4),
        renew: Duration::from_secs(1),
    };
    Settings {
        lease: Some(LeaseSettings {
            client,
            namespace: "default".to_owned(),
            name: "candor".to_owned(),
            identity: identity.to_owned(),
            timing,
        }),
        ..Settings::default()
    }
}

fn deeds(faults: &Faults) -> Vec<RequestInfo> {
    let writes = faults.writes().into_iter();
    writes.filter(|write| write.resource != "leases").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_cannot_renew_its_lease_stops_before_the_other_acts() {
    let stage = Stage::set().await;
    let (first, second) = (Faults::seeded(1), Faults::seeded(2));
    let leader = Life::start(stage.client(), first.clone(), with_lease(stage.client(), "first"));
    stage.create("cart", json!({"shards": 2, "replicas": 0})).await;
    stage.until("cart", "Ready", PATIENCE, is_ready).await;
    let other = Life::start(stage.client(), second.clone(), with_lease(stage.client(), "second"));
    first.add(
        Rule::new("cut off from its lease")
            .writes()
            .resource("leases")
            .then(Fault::Drop),
    );
    stage.change("cart", json!({"shards": 3})).await;
    let begun = Instant::now();
    let mut overlapped = false;
    let (mut of_first, mut taken) = (deeds(&first).len(), false);
    loop {
        let now = deeds(&first).len();
        overlapped |= taken && now > of_first;
        of_first = now;
        taken = !deeds(&second).is_empty() || second.writes().iter().any(|one| one.verb == Verb::Update);
        if leader.is_over() && taken {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the second operator never took over");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stage.change("cart", json!({"shards": 2})).await;
    stage.until("cart", "Ready under the second", PATIENCE, is_ready).await;
    assert!(!overlapped, "the first acted after the second had the lease");
    assert!(!deeds(&second).is_empty());
    println!("lease lost: the other acted {:?} later at most", begun.elapsed());
    other.end().await;
}

/// A keeper of the lease `candor` with counted requests.
fn keeper(client: Client, faults: &Faults, identity: &str) -> (Leadership, JoinHandle<LeaseError>) {
    let server = tower::service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    let client = Client::new(faults.layer().layer(server), "default");
    let timing = Timing {
        duration: Duration::from_secs(2),
        renew: Duration::from_millis(100),
    };
    let leadership = Leadership::default();
    let api = Api::default_namespaced(client);
    let keeper = Keeper::new(
        api,
        "candor".to_owned(),
        identity.to_owned(),
        timing,
        leadership.clone(),
    );
    (leadership, tokio::spawn(keeper.keep()))
}

#[tokio::test]
async fn two_operators_with_the_same_identity_never_lead_at_once() {
    let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
    let client = || sandbox.client_as("admin", &["system:masters"]);
    let (first, first_task) = keeper(client(), &Faults::seeded(1), "candor-1");
    first.acquired().await;
    let asked = Faults::seeded(2);
    let (second, second_task) = keeper(client(), &asked, "candor-1");
    let begun = Instant::now();
    // Longer than the lease lasts without a renewal.
    while asked.requests() < 10 || begun.elapsed() < Duration::from_secs(3) {
        assert!(!second.is_ours(), "both lead");
        assert!(begun.elapsed() < PATIENCE, "the second does not ask");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(first.is_ours());
    // The first operator is killed without releasing the lease. Its successor of the same name waits until the lease
    // expires.
    first_task.abort();
    let ended = Instant::now();
    tokio::time::timeout(PATIENCE, second.acquired()).await.unwrap();
    assert!(!first.is_ours(), "both lead");
    assert!(ended.elapsed() >= Duration::from_secs(1), "{:?}", ended.elapsed());
    let lease: Lease = Api::default_namespaced(client()).get("candor").await.unwrap();
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
    second_task.abort();
}

#[tokio::test]
async fn a_holder_whose_response_is_lost_recognizes_its_own_lease() {
    let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
    let client = sandbox.client_as("admin", &["system:masters"]);
    let faults = Faults::seeded(3);
    faults.add(
        Rule::new("the answer to the first write is lost")
            .writes()
            .resource("leases")
            .nth(1)
            .then(Fault::LoseResponse),
    );
    let (leadership, task) = keeper(client, &faults, "candor-0");
    let begun = Instant::now();
    leadership.acquired().await;
    // A lease of another holder would have to expire first.
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_cluster_costs_no_write() {
    let stage = Stage::set().await;
    let maker = Life::start(stage.client(), Faults::seeded(1), Settings::default());
    stage.create("cart", json!({"shards": 2, "replicas": 1})).await;
    stage.until("cart", "Ready", PATIENCE, is_ready).await;
    maker.end().await;
    let faults = Faults::seeded(1);
    let keeper = Life::start(stage.client(), faults.clone(), Settings::default());
    // Commands to members serve as the clock: this many probes have passed.
    let begun = Instant::now();
    let before = stage.world.commands();
    while stage.world.commands() < before + 200 {
        assert!(begun.elapsed() < PATIENCE, "no beats");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let requests = faults.requests();
    let settled = Instant::now();
    let before = stage.world.commands();
    while stage.world.commands() < before + 100 {
        assert!(begun.elapsed() < PATIENCE, "no beats");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!(
        "idle: {} requests, 0 writes in {:?}",
        faults.requests() - requests,
        settled.elapsed()
    );
    assert_eq!(faults.writes(), [], "a healthy cluster was written to");
    assert_eq!(faults.requests(), requests, "a healthy cluster was asked for");
    keeper.end().await;
}
