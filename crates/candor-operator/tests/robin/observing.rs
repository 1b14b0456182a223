//! What Robin publishes: servers, pods, generations.

use std::sync::atomic::Ordering;
use std::time::Duration;

use candor_engine::observation::Server as Seen;
use candor_operator::kinds::redkey::robin::link::{Frame, RobinView};
use serde_json::json;

use crate::bench::{Bench, Counting, key, until};

fn state(frame: &Frame, ordinal: u32) -> Option<&Seen> {
    frame.servers.get(&ordinal).map(|one| &one.server)
}

fn up(frame: &Frame, ordinal: u32) -> bool {
    matches!(state(frame, ordinal), Some(Seen::Up(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_servers_are_observed_and_a_fault_reaches_the_operator_in_time() {
    let mut bench = Bench::four().await;
    let robin = bench.robin();
    let mut operator = bench.operator();
    operator
        .until("all are up", Duration::from_secs(10), |frame| {
            (0..4).all(|at| up(frame, at)) && frame.generation == Some(1)
        })
        .await;
    let frame = operator.frame().unwrap();
    assert!(!frame.plan_empty, "three primaries without replicas are desired");
    for (ordinal, observed) in &frame.servers {
        let server = &bench.servers[usize::try_from(*ordinal).unwrap()];
        let Seen::Up(facts) = &observed.server else { panic!() };
        assert_eq!(facts.id, server.node().my_id().await.unwrap());
        assert_eq!(observed.ip, Some(server.ip));
        assert_eq!(facts.map.0.len(), 4);
    }
    let took = {
        bench.servers[0].kill();
        operator
            .until("the primary is dead", Duration::from_secs(3), |frame| {
                matches!(state(frame, 0), Some(Seen::Dead { .. }))
            })
            .await
    };
    assert!(took < Duration::from_millis(500), "{took:?}");
    bench.servers[1].signal("-STOP");
    let took = operator
        .until("a frozen one is silent", Duration::from_secs(3), |frame| {
            matches!(state(frame, 1), Some(Seen::Silent { .. }))
        })
        .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    bench.servers[1].signal("-CONT");
    bench.servers[0].restart();
    operator
        .until("both are up again", Duration::from_secs(10), |frame| {
            up(frame, 0) && up(frame, 1)
        })
        .await;
    robin.end().await.unwrap();
    let refused = |view: &RobinView| matches!(view, RobinView::Refused { .. });
    until("it refuses connections", async || refused(&operator.links.view(&key()))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_come_and_go_and_others_with_the_labels_are_no_servers() {
    let bench = Bench::four().await;
    let _robin = bench.robin();
    let mut operator = bench.operator();
    operator
        .until("all are up", Duration::from_secs(10), |frame| frame.servers.len() == 4)
        .await;
    let before = operator.frame().unwrap().servers[&3].pod_uid.clone();
    bench.delete_pod(3).await;
    operator
        .until("it is gone", Duration::from_secs(2), |frame| frame.servers.len() == 3)
        .await;
    bench.pod(3).await;
    operator
        .until("another is there", Duration::from_secs(2), |frame| up(frame, 3))
        .await;
    assert_ne!(operator.frame().unwrap().servers[&3].pod_uid, before);

    // A pod of another controller, and one that is over: its address may have been given to another.
    let mut foreign = bench.pods().get("c-3").await.unwrap();
    bench.delete_pod(3).await;
    operator
        .until("it is gone", Duration::from_secs(2), |frame| frame.servers.len() == 3)
        .await;
    foreign.metadata.resource_version = None;
    foreign.metadata.uid = None;
    foreign.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "other", "uid": "1", "controller": true,
    }]))
    .unwrap();
    bench
        .pods()
        .create(&kube::api::PostParams::default(), &foreign)
        .await
        .unwrap();
    let over = kube::api::Patch::Merge(json!({"status": {"phase": "Failed"}}));
    bench
        .pods()
        .patch_status("c-2", &kube::api::PatchParams::default(), &over)
        .await
        .unwrap();
    operator
        .until("one is over", Duration::from_secs(2), |frame| {
            frame.servers[&2].ip.is_none() && matches!(state(frame, 2), Some(Seen::Nowhere))
        })
        .await;
    assert_eq!(
        operator.frame().unwrap().servers.len(),
        3,
        "the foreign pod is no server"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_generation_is_confirmed_at_once_on_request() {
    let bench = Bench::four().await;
    let driver = Counting::default();
    let _robin = bench.robin_with(driver.clone());
    let mut operator = bench.operator();
    operator.settled(4, 1).await;
    bench.patch(json!({"spec": {"primaries": 5}})).await;
    operator.links.refresh(&key());
    let took = operator
        .until("generation 2 is confirmed", Duration::from_secs(5), |frame| {
            frame.confirms(2)
        })
        .await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    // A pod that appears makes Robin read it too.
    bench.patch(json!({"spec": {"primaries": 4}})).await;
    bench.delete_pod(3).await;
    operator
        .until("generation 3 is confirmed", Duration::from_secs(5), |frame| {
            frame.confirms(3)
        })
        .await;
    // An idle cluster has no rounds until its interval has passed.
    operator.calm().await;
    let idle = driver.rounds.load(Ordering::SeqCst);
    let calm = tokio::time::timeout(Duration::from_secs(3), operator.triggers.recv()).await;
    assert!(calm.is_err(), "nothing changes");
    let rounds = driver.rounds.load(Ordering::SeqCst) - idle;
    assert!(rounds <= 2, "{rounds} rounds in three seconds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observation_is_published_while_a_round_runs_and_is_not_confirmed_by_it() {
    let mut bench = Bench::four().await;
    let driver = Counting::default();
    let robin = bench.robin_with(driver.clone());
    let mut operator = bench.operator();
    operator.settled(4, 1).await;
    driver.lasting.store(3000, Ordering::SeqCst);
    operator.links.refresh(&key());
    bench.servers[2].kill();
    let took = operator
        .until("the dead server is published", Duration::from_secs(5), |frame| {
            matches!(state(frame, 2), Some(Seen::Dead { .. }))
        })
        .await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(
        !operator.frame().unwrap().plan_empty,
        "the plan was for another observation"
    );
    // The running round is finished before the ports are closed.
    let before = driver.rounds.load(Ordering::SeqCst);
    robin.end().await.unwrap();
    assert!(driver.rounds.load(Ordering::SeqCst) > before);
}
