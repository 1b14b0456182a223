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
    let mut seen = 0;
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
        seen += 1;
    }
    assert!(seen > 70, "the page maps more than {seen} names");
}
