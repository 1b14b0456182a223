//! Every path, status code and body of the contract.

use super::*;

#[tokio::test]
async fn reading_needs_no_token_and_has_the_bodies_of_the_contract() {
    let served = Served::new().await;
    for (path, body) in [
        ("/health", r#"{"status":"OK"}"#),
        ("/v1/redkeycluster/status", r#"{"status":"Ready"}"#),
        (
            "/v1/redkeycluster/replicas",
            r#"{"primaries":3,"replicas_per_primary":1}"#,
        ),
        ("/v1/cluster/status", r#"{"status":"ReshardingError"}"#),
        (
            "/v1/cluster/check",
            r#"{"errors":["slot 7 has no owner"],"warnings":[]}"#,
        ),
        (
            "/v1/cluster/nodes",
            r#"{"nodes":[{"name":"c-0","id":"a1","ip":"10.0.0.1","role":"primary","primaryId":"","failures":0,"sent":0,"recv":0,"linkStatus":"connected"}]}"#,
        ),
        ("/metrics", ""),
    ] {
        assert_eq!(served.get(path).await, (200, body.to_owned()), "{path}");
    }
    assert_eq!(served.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_status_is_set_also_no_reconciling() {
    let served = Served::new().await;
    for status in RobinStatus::ALL {
        let body = format!(r#"{{"status":"{status}"}}"#);
        assert_eq!(served.put("/v1/redkeycluster/status", &body).await, (200, body));
    }
    let rejected = served.put("/v1/redkeycluster/status", r#"{"status":"Fine"}"#).await;
    assert_eq!(rejected.0, 400);
    assert!(error_of(&rejected).contains("NoReconciling"), "{rejected:?}");
    assert_eq!(served.changes().len(), RobinStatus::ALL.len());
}

#[tokio::test]
async fn a_topology_is_unchanged_or_started() {
    let served = Served::new().await;
    let path = "/v1/redkeycluster/replicas";
    let same = r#"{"primaries":3,"replicas_per_primary":1}"#;
    assert_eq!(served.put(path, same).await, (200, same.to_owned()));
    let other = r#"{"primaries":5,"replicas_per_primary":1}"#;
    assert_eq!(served.put(path, r#"{"primaries":5}"#).await, (201, other.to_owned()));
    for wrong in [
        "",
        "{}",
        "[]",
        "{",
        r#"{"primaries":-1}"#,
        r#"{"primaries":"3"}"#,
        r#"{"primaries":3,"replicas":1}"#,
        r#"{"primaries":1.5}"#,
    ] {
        let rejected = served.put(path, wrong).await;
        assert_eq!(rejected.0, 400, "{wrong}");
        error_of(&rejected);
    }
    assert_eq!(served.changes().len(), 1);
}

#[tokio::test]
async fn work_is_started_running_or_completed() {
    let served = Served::new().await;
    let calls = [
        ("/v1/cluster/fix", ""),
        ("/v1/cluster/recreate", ""),
        ("/v1/cluster/move", r#"{"from":"3","to":"c-4","slots":0}"#),
        ("/v1/cluster/reset/2", ""),
    ];
    for (work, codes, word) in [
        (Work::Started, [201, 201, 201, 202], "In progress"),
        (Work::Running, [202, 202, 202, 202], "In progress"),
        (Work::Completed, [200, 200, 200, 200], "Completed"),
    ] {
        *served.state.work.lock().unwrap() = Ok(work);
        for ((path, body), code) in calls.iter().zip(codes) {
            let expected = format!(r#"{{"status":"{word}"}}"#);
            assert_eq!(served.put(path, body).await, (code, expected), "{path} {work:?}");
        }
    }
    assert_eq!(
        served.changes()[..4],
        ["fix", "recreate", "move 0 from 3 to c-4", "reset 2"].map(str::to_owned)
    );
}

#[tokio::test]
async fn a_rejection_has_its_code_and_its_reason() {
    let served = Served::new().await;
    for (rejection, code) in [
        (Rejection::UnknownNode("9".to_owned()), 400),
        (
            Rejection::Conflict("slots are moving: call again when they have moved".to_owned()),
            409,
        ),
        (Rejection::Failed("c-1 does not respond".to_owned()), 500),
    ] {
        *served.state.work.lock().unwrap() = Err(rejection.clone());
        let rejected = served.put("/v1/cluster/move", r#"{"from":"9","to":"1"}"#).await;
        assert_eq!((rejected.0, error_of(&rejected)), (code, rejection.to_string()));
    }
}

#[tokio::test]
async fn a_move_between_servers_that_cannot_be_is_rejected() {
    let served = Served::new().await;
    for wrong in [
        r#"{"from":"1","to":"1"}"#,
        r#"{"from":"","to":"1"}"#,
        r#"{"from":"1"}"#,
        r#"{"from":"1","to":"2","slots":16385}"#,
        r#"{"from":"1","to":"2","slots":-1}"#,
        r#"{"from":"1","to":"2","slots":70000}"#,
        r#"{"from":1,"to":2}"#,
    ] {
        let rejected = served.put("/v1/cluster/move", wrong).await;
        assert_eq!(rejected.0, 400, "{wrong}");
        error_of(&rejected);
    }
    assert_eq!(served.changes(), Vec::<String>::new());
}
