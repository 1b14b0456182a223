//! Alerts and the dashboard use only metrics that the operator or the exporter really exposes, and every alert has a
//! docs page and a test.

use std::collections::BTreeSet;
use std::path::Path;

use candor_operator::kinds::redkey::robin::api::Check;
use candor_operator::kinds::redkey::robin::metrics::{Measurement, text};
use candor_operator::manifests::alerts::{OF_MEMBERS, OF_OPERATOR};
use candor_operator::manifests::dashboard::dashboard;
use candor_operator::runtime::cache::{ClusterKey, ClusterKind};
use candor_operator::runtime::metrics::{Metrics, Trouble};

use super::figures::{InfoFields, Page};

/// Replies to `INFO all`, `CLUSTER INFO` and `SLOWLOG LEN` of a primary and a replica of Valkey 9.1.2 with
/// persistence.
const ANSWERS: [&str; 2] = [include_str!("answers/primary.txt"), include_str!("answers/replica.txt")];

/// The metric names in a text in the Prometheus format.
fn names(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.split([' ', '{']).next()?.to_owned()))
}

/// Every exposed metric.
fn exposed() -> BTreeSet<String> {
    let metrics = Metrics::default();
    let key = ClusterKey {
        kind: ClusterKind::Valkey,
        namespace: "shop".to_owned(),
        name: "c".to_owned(),
    };
    metrics.reconciled("written", std::time::Duration::from_millis(1));
    metrics.panicked(&key);
    metrics.undecodable("Pod", 0, 1);
    metrics.ready.get_or_create(&(&key).into()).set(1);
    metrics.slots_moved.get_or_create(&(&key).into()).inc();
    metrics.status_writes.get_or_create(&(&key).into()).inc();
    let member = candor_engine::model::MemberRef {
        shard: candor_engine::model::ShardIndex(0),
        node: 1,
    };
    metrics.took_over(&key, member);
    metrics.is_in(&key, "Ready", Some("ScaleOut"));
    let trouble = Trouble {
        namespace: "shop".to_owned(),
        name: "c".to_owned(),
        condition: "Degraded".to_owned(),
        reason: "PrimaryLost".to_owned(),
        severity: "Error".to_owned(),
        resource: "ValkeyCluster",
    };
    metrics.has_troubles(&key, vec![trouble]);
    let mut all: BTreeSet<String> = names(&metrics.text()).collect();
    all.extend(names(&robin()));
    for answer in ANSWERS {
        let mut page = Page::of(&InfoFields::read(&[answer]));
        page.one("up", "gauge", "1 if the server answers.", 1.0);
        all.extend(names(&page.text()));
    }
    all
}

/// What the agent of a `RedkeyCluster` exposes.
fn robin() -> String {
    let measured = Measurement {
        cluster: "cache".to_owned(),
        namespace: "shop".to_owned(),
        info: [("cache-0".to_owned(), ANSWERS[0].to_owned())].into(),
        cluster_info: Some("cluster_state:ok".to_owned()),
        check: Some(Check::default()),
        ..Measurement::default()
    };
    text(&measured, &[])
}

/// The metrics that an expression uses: all of ours start with one of two prefixes.
fn asked(expression: &str) -> Vec<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("candor_") || word.starts_with("redis_"))
        .map(str::to_owned)
        .collect()
}

fn check(what: &str, expression: &str, exposed: &BTreeSet<String>) {
    let asked = asked(expression);
    assert!(!asked.is_empty(), "{what}: {expression} names no figure");
    for figure in asked {
        assert!(exposed.contains(&figure), "{what}: {figure} is not exposed");
    }
}

#[test]
fn alerts_ask_for_figures_that_exist_and_have_a_page_and_a_test() {
    let exposed = exposed();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tests = std::fs::read_to_string(root.join("deploy/monitoring/alerts.test.yaml")).unwrap();
    for alert in OF_OPERATOR.iter().chain(OF_MEMBERS) {
        check(alert.name, alert.expr, &exposed);
        let page = root.join(format!("docs/runbooks/{}.md", alert.name));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for part in [&format!("# {}", alert.name), "## Look", "## Do"] {
            assert!(page.contains(part), "{}: no {part}", alert.name);
        }
        assert!(
            tests.contains(&format!("- alertname: {}\n", alert.name)),
            "{} has no test",
            alert.name
        );
    }
}

#[test]
fn the_dashboard_shows_figures_that_exist() {
    let exposed = exposed();
    let dashboard = dashboard();
    let mut shown = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            check(&panel["title"].to_string(), target["expr"].as_str().unwrap(), &exposed);
            shown += 1;
        }
    }
    assert!(shown > 20, "{shown}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            check("a variable", variable["query"].as_str().unwrap(), &exposed);
        }
    }
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let ids: BTreeSet<u64> = panels.filter_map(|one| one["id"].as_u64()).collect();
    assert_eq!(
        ids.len(),
        dashboard["panels"].as_array().unwrap().len(),
        "every panel has its own id"
    );
}
