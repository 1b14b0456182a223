//! Declared types and reasons, the derives, and what is written down from them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::severity::{self, Severity};
use kube_status::{
    Condition, ConditionType, Conditioned, ConditionedMut, Draft, Polarity, Reason, Status, crd_description,
    documentation, set,
};

use crate::thing::at;

/// Why a cache is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reason)]
enum CacheReason {
    /// Every member answers.
    AllUp,
    /// Members are being
    /// started.
    #[reason(severity = Info, expected = "90s")]
    Starting,
    /// Out of memory | killed.
    #[reason(severity = Error, name = "OOMKilled")]
    OomKilled,
}

/// The conditions of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ConditionType)]
#[condition(reasons = CacheReason)]
enum CacheCondition {
    /// The cache serves reads and writes.
    #[condition(reasons(AllUp, Starting))]
    Ready,
    /// The cache serves, but not as it should.
    #[condition(negative, reasons(OomKilled))]
    Degraded,
    /// The API answers.
    #[condition(name = "example.org/API-Ready")]
    ApiReady,
}

#[test]
fn a_declaration_knows_its_names_polarities_and_meanings() {
    assert_eq!(CacheCondition::ALL.len(), 3);
    assert_eq!(CacheCondition::ApiReady.name(), "example.org/API-Ready");
    assert_eq!(CacheCondition::Degraded.polarity(), Polarity::Negative);
    assert_eq!(CacheCondition::Ready.doc(), "The cache serves reads and writes.");
    assert_eq!(
        CacheCondition::Ready.reasons(),
        [CacheReason::AllUp, CacheReason::Starting]
    );
    assert_eq!(CacheReason::OomKilled.to_string(), "OOMKilled");
    assert_eq!(CacheReason::OomKilled.severity(), Some(Severity::Error));
    assert_eq!(CacheReason::Starting.doc(), "Members are being started.");
    assert_eq!(String::from(CacheCondition::Ready), "Ready");
}

#[test]
fn the_documentation_is_two_tables_made_from_the_declaration() {
    assert_eq!(
        documentation::<CacheCondition>(),
        "\
| Type | Good | Meaning | Reasons |
|---|---|---|---|
| `Ready` | True | The cache serves reads and writes. | `AllUp`, `Starting` |
| `Degraded` | False | The cache serves, but not as it should. | `OOMKilled` |
| `example.org/API-Ready` | True | The API answers. |  |

| Reason | Severity | Expected within | Meaning |
|---|---|---|---|
| `AllUp` |  |  | Every member answers. |
| `Starting` | Info | 1m 30s | Members are being started. |
| `OOMKilled` | Error |  | Out of memory \\| killed. |
"
    );
}

#[test]
fn the_description_for_the_crd_comes_from_the_same_declaration() {
    assert_eq!(
        crd_description::<CacheCondition>(),
        "Conditions of this object. Ready (good when True): The cache serves reads and writes. Degraded (good when \
         False): The cache serves, but not as it should. example.org/API-Ready (good when True): The API answers."
    );
}

#[derive(Clone, Debug, Default)]
struct Deprecated {
    v1beta1: Option<Old>,
}

#[derive(Clone, Debug, Default)]
struct Old {
    conditions: Vec<severity::Condition>,
}

#[derive(Clone, Debug, Default)]
struct MachineStatus {
    conditions: Vec<Condition>,
    deprecated: Option<Deprecated>,
}

#[derive(Clone, Debug, Default, Conditioned)]
#[conditioned(kind = "Machine", prominent = "cluster.x-k8s.io/control-plane")]
#[conditioned(severity, path = "status?.deprecated?.v1beta1?.conditions")]
struct MachineV1 {
    metadata: ObjectMeta,
    status: Option<MachineStatus>,
}

#[derive(Clone, Debug, Default, Conditioned)]
struct Always {
    metadata: ObjectMeta,
    status: MachineStatus,
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        generation: Some(2),
        ..ObjectMeta::default()
    }
}

#[test]
fn the_derive_joins_an_object_with_both_generations_and_makes_a_missing_status() {
    let mut machine = MachineV1 {
        metadata: named("m1"),
        status: None,
    };
    assert_eq!(Conditioned::<Condition>::conditions(&machine), []);
    let _ = set::<Condition, _>(
        &mut machine,
        Draft::good(CacheCondition::Ready, CacheReason::AllUp),
        at(0),
    );
    let _ = severity::set(&mut machine, severity::Draft::good("Ready"), at(0));
    let read: &dyn Conditioned = &machine;
    assert_eq!((read.kind(), read.name(), read.generation()), ("Machine", "m1", 2));
    assert_eq!(read.conditions()[0].reason, "AllUp");
    let old = ConditionedMut::<severity::Condition>::conditions_mut(&mut machine);
    assert_eq!((old.len(), old[0].status()), (1, Status::True));
}

#[test]
fn the_derive_takes_a_status_that_is_always_there_and_the_structs_name_as_kind() {
    let mut object = Always {
        metadata: named("a"),
        status: MachineStatus::default(),
    };
    let _ = set(&mut object, Draft::good("Ready", "Up"), at(0));
    assert_eq!(
        (object.kind(), object.conditions().len(), object.is_prominent()),
        ("Always", 1, false)
    );
}

#[test]
fn a_label_makes_an_object_prominent() {
    let mut machine = MachineV1 {
        metadata: named("m1"),
        status: None,
    };
    let prominent = |machine: &MachineV1| Conditioned::<Condition>::is_prominent(machine);
    assert!(!prominent(&machine));
    let label = ("cluster.x-k8s.io/control-plane".to_owned(), String::new());
    machine.metadata.labels = Some(BTreeMap::from([label]));
    assert!(prominent(&machine));
}
