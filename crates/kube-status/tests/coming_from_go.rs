//! The page for those who come from Go names things that exist: every name in its second column is one of these.

macro_rules! names {
    ($($path:path),* $(,)?) => {
        mod exist {
            $(
                const _: () = {
                    #[allow(unused_imports)]
                    use $path as _;
                };
            )*
        }
        const NAMES: &[&str] = &[$(stringify!($path)),*];
    };
}

names![
    kube_status::Aggregate,
    kube_status::Conditioned,
    kube_status::ConditionedMut,
    kube_status::Conventions,
    kube_status::Mirror,
    kube_status::Order,
    kube_status::Ownership,
    kube_status::Patch,
    kube_status::Status,
    kube_status::Summary,
    kube_status::Untyped,
    kube_status::find,
    kube_status::is_false,
    kube_status::is_true,
    kube_status::is_unknown,
    kube_status::merge::Input,
    kube_status::merge::Operation,
    kube_status::merge::Owner,
    kube_status::merge::Priority,
    kube_status::merge::Standard,
    kube_status::merge::Strategy,
    kube_status::remove,
    kube_status::same_state,
    kube_status::same_except_generation,
    kube_status::set,
    kube_status::set_in,
    kube_status::severity::Aggregate,
    kube_status::severity::Draft,
    kube_status::severity::Mirror,
    kube_status::severity::Summary,
    kube_status::severity::find,
    kube_status::severity::is_false,
    kube_status::severity::is_true,
    kube_status::severity::is_unknown,
    kube_status::severity::remove,
    kube_status::severity::same_state,
    kube_status::severity::set,
    kube_status::severity::set_in,
];

/// Behind the feature `client`, which this test does not need.
const BEHIND_A_FEATURE: &[&str] = &["writer::StatusWriter"];

#[test]
fn every_name_on_the_page_exists() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coming-from-go.md");
    let page = std::fs::read_to_string(page).expect("the page is in docs/");
    let cells = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('|').nth(2));
    let mut observed = 0;
    for span in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        let name = span.split('(').next().unwrap_or_default();
        let known = |known: &str| name == known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with("::"));
        let exists = NAMES
            .iter()
            .filter_map(|path| path.strip_prefix("kube_status::"))
            .any(known);
        assert!(
            exists || BEHIND_A_FEATURE.contains(&name),
            "{name} is nowhere in kube_status"
        );
        observed += 1;
    }
    assert!(observed > 70, "the page maps more than {observed} names");
}

/// The page taken literally: an object with Cluster API's conventions, and the functions of the second column.
mod literally {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube_status::severity::{self, Severity};
    use kube_status::{Condition, Conditioned, Conventions, Draft, Ownership, Patch, Timestamp, set};

    #[derive(Clone, Default)]
    struct ClusterStatus {
        conditions: Vec<Condition>,
        old: Vec<severity::Condition>,
    }

    #[derive(Clone, Default, Conditioned)]
    #[conditioned(conventions = Conventions::CLUSTER_API)]
    #[conditioned(severity, path = "status?.old")]
    struct Cluster {
        metadata: ObjectMeta,
        status: Option<ClusterStatus>,
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a small number of seconds")
    }

    fn types(cluster: &Cluster) -> Vec<&str> {
        let conditions: &[Condition] = cluster.conditions();
        conditions.iter().map(|one| one.type_.as_str()).collect()
    }

    #[test]
    fn set_has_the_order_of_cluster_api() {
        let mut cluster = Cluster::default();
        for type_ in ["Alpha", "Deleting", "MachinesReady", "InfrastructureReady", "Available"] {
            let _ = set::<Condition, _>(&mut cluster, Draft::good(type_, "Up"), at(1));
        }
        assert_eq!(
            types(&cluster),
            ["Available", "InfrastructureReady", "MachinesReady", "Alpha", "Deleting"]
        );
    }

    #[test]
    fn patch_has_the_order_of_cluster_api() {
        let after = ["Alpha", "InfrastructureReady"].map(|type_| Draft::good(type_, "Up").into_condition(1, at(1)));
        let mut latest = Vec::new();
        let ownership = Ownership::none().conventions(Conventions::CLUSTER_API);
        let _ = Patch::between(&[], &after)
            .apply(&mut latest, &ownership, at(2))
            .unwrap();
        assert_eq!(latest[0].type_, "InfrastructureReady");
    }

    #[test]
    fn generation_1_moves_the_time_with_any_change() {
        let mut cluster = Cluster::default();
        let draft = |message| severity::Draft::bad("VPCReady", Severity::Info, "Waiting", message);
        let _ = severity::set(&mut cluster, draft("1 of 3"), at(1));
        let _ = severity::set(&mut cluster, draft("2 of 3"), at(9));
        let list: &[severity::Condition] = cluster.conditions();
        assert_eq!(list[0].last_transition_time(), Some(at(9)));
    }

    /// Go counts a bad condition without a severity after everything else; the proposal counts it as an error.
    #[test]
    fn generation_1_merges_by_the_rules_of_go() {
        let text = r#"[{"type":"A","status":"False","reason":"NoSeverity"},
                       {"type":"B","status":"False","severity":"Info","reason":"Waiting"}]"#;
        let mut cluster = Cluster::default();
        cluster.status.get_or_insert_default().old = serde_json::from_str(text).unwrap();
        let _ = severity::Summary::new().set(&mut cluster, at(1));
        let list: &[severity::Condition] = cluster.conditions();
        assert_eq!(
            severity::find(list, "Ready").map(severity::Condition::reason),
            Some("Waiting")
        );
    }

    #[test]
    fn generation_1_sets_a_stored_condition() {
        let stored = severity::Draft::good("VPCReady").into_condition(at(5));
        let mut cluster = Cluster::default();
        let _ = severity::set(&mut cluster, severity::Draft::stored(&stored), at(9));
        let list: &[severity::Condition] = cluster.conditions();
        assert_eq!(list, [stored]);
    }
}
