//! The auditor against real servers, without an operator. The tests form the cluster and write its status, so that
//! every false status that the auditor finds is intentional.

mod bench;

use std::time::{Duration, Instant};

use bench::Bench;
use candor_audit::{Defect, Kind, Outcome, Unreached};

fn within(value: Duration, least: f64, most: f64) -> bool {
    (least..=most).contains(&value.as_secs_f64())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_cluster_has_no_false_ready_no_loss_and_no_outage() {
    let bench = Bench::start("healthy").await;
    bench.set_ready(false).await;
    let auditor = bench.audit(500).await;
    bench.until(&auditor, "whole", |now| now.whole).await;
    bench.set_ready(true).await;
    bench.until(&auditor, "ready", |now| now.ready).await;
    bench.until_written(&auditor, 1000).await;
    let audit = auditor.finish().await;
    println!("{audit}");
    assert_eq!(audit.truth.false_ready(), Duration::ZERO);
    assert_eq!(
        (
            audit.writes.lost,
            audit.writes.unread_slots,
            audit.writes.unacknowledged
        ),
        (0, 0, 0)
    );
    assert!(audit.writes.acknowledged >= 1000);
    assert_eq!(
        audit.truth.late.len(),
        1,
        "status was late once: {:?}",
        audit.truth.late
    );
    assert!(audit.longest_outage() < Duration::from_secs(1));
    assert_eq!(bench.keys().await, 0, "the canaries are removed");
    assert_eq!(audit.writes.left_keys, 0);
    assert_eq!(audit.truth.not_judged, []);
    assert_eq!(audit.result.outcome, Outcome::True, "{}", audit.result);
    assert!(audit.to_string().ends_with(&format!("\n\n{}\n", audit.result)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkeycluster_is_audited_by_its_own_fields_and_password() {
    let bench = Bench::start_of(Kind::RedkeyCluster, "cache").await;
    bench.protect("hidden").await;
    bench.set_ready(true).await;
    let auditor = bench.audit(500).await;
    bench.until(&auditor, "ready", |now| now.ready && now.whole).await;
    bench.until_written(&auditor, 500).await;
    let audit = auditor.finish().await;
    println!("{audit}");
    assert_eq!((audit.writes.lost, audit.writes.left_keys), (0, 0));
    assert_eq!(audit.result.outcome, Outcome::True, "{}", audit.result);

    let auditor = bench.audit(0).await;
    bench.until(&auditor, "whole", |now| now.whole).await;
    bench.freeze("cache-1");
    until_every_deadline_is_over().await;
    let audit = auditor.finish().await;
    bench.thaw("cache-1");
    assert_eq!(audit.result.outcome, Outcome::FalseReady, "{}", audit.result);
}

/// Waits until every deadline has passed, so that a wrong status counts as false.
async fn until_every_deadline_is_over() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_route_to_the_members_nothing_is_judged() {
    let bench = Bench::start("apart").await;
    bench.set_ready(true).await;
    // To the auditor, a frozen server and a server behind a firewall look alike: it gets no reply.
    bench.freeze_all();
    let auditor = bench.audit(500).await;
    bench.until(&auditor, "reported as ready", |now| now.ready).await;
    until_every_deadline_is_over().await;
    let audit = auditor.finish().await;
    println!("{audit}");
    assert_eq!((audit.truth.spells.len(), audit.truth.judged), (0, Duration::ZERO));
    assert_eq!(audit.truth.not_judged.len(), 3);
    assert_eq!(audit.truth.not_judged[0].why, Unreached::NeverResponded);
    assert_eq!(audit.writes.longest_outage, None);
    assert_eq!(audit.result.outcome, Outcome::NotJudged, "{}", audit.result);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_a_password_is_judged_only_with_a_login() {
    let bench = Bench::start("closed").await;
    bench.set_ready(true).await;
    bench
        .send_to_all(&["ACL", "SETUSER", "auditor", "on", ">secret", "~candor-audit-*", "+@all"])
        .await;
    bench
        .send_to_all(&["ACL", "SETUSER", "reader", "on", ">secret", "+info", "+cluster"])
        .await;
    bench.send_to_all(&["CONFIG", "SET", "requirepass", "other"]).await;
    let auditor = bench.audit(500).await;
    bench.until(&auditor, "reported as ready", |now| now.ready).await;
    until_every_deadline_is_over().await;
    let audit = auditor.finish().await;
    println!("{audit}");
    assert_eq!((audit.truth.spells.len(), audit.truth.judged), (0, Duration::ZERO));
    let rejected = |why: &Unreached| matches!(why, Unreached::LoginRejected(message) if message.contains("NOAUTH"));
    assert!(audit.truth.not_judged.iter().all(|one| rejected(&one.why)), "{audit}");
    assert_eq!(audit.result.outcome, Outcome::NotJudged, "{}", audit.result);

    let wrong = bench.audit_as(500, Some("auditor"), Some("mistyped")).await;
    until_every_deadline_is_over().await;
    let audit = wrong.finish().await;
    assert_eq!(audit.result.outcome, Outcome::NotJudged, "{audit}");

    // The user may read but not write: the members are judged, the slots are not.
    let reader = bench.audit_as(500, Some("reader"), Some("secret")).await;
    bench.until(&reader, "whole", |now| now.whole && now.ready).await;
    until_every_deadline_is_over().await;
    let audit = reader.finish().await;
    println!("{audit}");
    assert_eq!(audit.truth.spells, [], "{audit}");
    assert_eq!((audit.writes.acknowledged, audit.writes.left_keys), (0, 0), "{audit}");
    assert!(
        audit.result.sentence.contains("no canary could be written"),
        "{}",
        audit.result
    );

    let auditor = bench.audit_as(500, Some("auditor"), Some("secret")).await;
    bench.until(&auditor, "whole", |now| now.whole && now.ready).await;
    bench.until_written(&auditor, 1000).await;
    let audit = auditor.finish().await;
    println!("{audit}");
    assert_eq!(audit.result.outcome, Outcome::True, "{}", audit.result);
    assert_eq!((audit.truth.not_judged.len(), audit.writes.left_keys), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_called_ready_is_found_out_with_its_outage() {
    let bench = Bench::start("killed").await;
    bench.set_ready(true).await;
    let auditor = bench.audit(500).await;
    bench
        .until(&auditor, "whole and ready", |now| now.whole && now.ready)
        .await;
    bench.until_written(&auditor, 500).await;
    let killed = Instant::now();
    bench.kill("killed-0");
    bench.until(&auditor, "broken", |now| !now.defects.is_empty()).await;
    // Its container comes back empty and outside the cluster: its slots have no owner.
    let lied = Duration::from_millis(1800);
    tokio::time::sleep_until((killed + lied).into()).await;
    bench.set_ready(false).await;
    bench.until(&auditor, "not ready", |now| !now.ready).await;
    let lie = killed.elapsed().as_secs_f64();
    let audit = auditor.finish().await;
    println!("{audit}");
    assert!(
        within(audit.truth.false_ready(), 1.5, lie),
        "{:?} of {lie}",
        audit.truth.false_ready()
    );
    assert!(
        within(audit.truth.beyond(), 0.5, lie - 1.0),
        "{:?}",
        audit.truth.beyond()
    );
    assert!(
        within(audit.longest_outage(), 1.5, 12.0),
        "{:?}",
        audit.longest_outage()
    );
    assert!(audit.writes.unacknowledged > 0);
    assert!(
        audit.writes.lost > 0 || audit.writes.unread_slots > 0,
        "its data is gone: {audit}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_primary_called_ready_is_found_out_and_its_thaw_ends_the_outage() {
    let bench = Bench::start("frozen").await;
    bench.set_ready(true).await;
    let auditor = bench.audit(500).await;
    bench
        .until(&auditor, "whole and ready", |now| now.whole && now.ready)
        .await;
    bench.until_written(&auditor, 500).await;
    let frozen = Instant::now();
    bench.freeze("frozen-1");
    let timed_out = |defect: &Defect| matches!(defect, Defect::NotResponding(pod) if pod == "frozen-1");
    bench
        .until(&auditor, "silent", |now| now.defects.iter().any(timed_out))
        .await;
    tokio::time::sleep_until((frozen + Duration::from_millis(2600)).into()).await;
    let lie = frozen.elapsed().as_secs_f64();
    bench.thaw("frozen-1");
    bench.until(&auditor, "whole again", |now| now.whole).await;
    let most = frozen.elapsed().as_secs_f64();
    let audit = auditor.finish().await;
    println!("{audit}");
    assert!(
        within(audit.truth.worst_false_ready(), lie - 0.4, most + 0.3),
        "{:?}",
        audit.truth.spells
    );
    assert!(
        audit.truth.beyond() > Duration::from_millis(100),
        "only what is beyond 2 s: {:?}",
        audit.truth.spells
    );
    assert!(
        audit.truth.beyond()
            < audit
                .truth
                .worst_false_ready()
                .saturating_sub(Duration::from_millis(900))
    );
    assert!(
        within(audit.longest_outage(), lie - 0.4, most + 0.5),
        "{:?}",
        audit.longest_outage()
    );
    assert_eq!((audit.writes.lost, audit.writes.unacknowledged), (0, 0), "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_slots_are_followed_and_lost_keys_are_counted() {
    let bench = Bench::start("moved").await;
    bench.set_ready(true).await;
    let auditor = bench.audit(1000).await;
    bench
        .until(&auditor, "whole and ready", |now| now.whole && now.ready)
        .await;
    bench.until_written(&auditor, 500).await;
    bench.migrate(0, 1, "0-99").await;
    bench.until_written(&auditor, 16_384).await;
    let removed = bench.remove_some_keys(0).await;
    assert!(removed > 0);
    let audit = auditor.finish().await;
    println!("{audit}");
    assert!(audit.writes.lost >= removed, "{} of {removed}", audit.writes.lost);
    assert_eq!(audit.writes.unread_slots, 0);
    assert!(
        audit.longest_outage() < Duration::from_secs(1),
        "{:?}",
        audit.longest_outage()
    );
}
