//! The pure parts by tables: no server, no clock.

use std::collections::BTreeSet;

use dittofs_operator::api::{DittoServer, Phase};
use dittofs_operator::conditions::{ServerCondition, ServerReason};
use dittofs_operator::config::Config;
use dittofs_operator::objects;
use dittofs_operator::observe::{Database, Observation};
use dittofs_operator::plan::{Plan, Step};
use dittofs_operator::report::phase;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_status::{ConditionType, Draft, Reason};
use serde_json::{Value, json};

use crate::world::server;

fn nothing() -> Observation {
    Observation {
        config_map: Ok(None),
        services: vec![Ok(None), Ok(None), Ok(None)],
        stateful_set: Ok(None),
        secrets: Vec::new(),
        storage_class: Ok(None),
        database: Ok(Database::NotInstalled),
    }
}

fn secret(data: &Value) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": "keys"}, "data": data})).unwrap()
}

fn hash(server: &DittoServer, observed: &Observation) -> String {
    match Config::judge(server, observed) {
        Config::Valid(hash) => hash,
        other => panic!("{other:?}"),
    }
}

/// A change of what a hash could be made of.
type Edit = fn(&mut DittoServer, &mut Observation);

#[test]
fn the_hash_is_of_the_configuration_and_its_secrets_and_of_nothing_else() {
    let base = || {
        let mut server = server("files");
        server.spec.config = "a: {b: 1, c: [x, y]}\nd: text".to_owned();
        let mut observed = nothing();
        observed.secrets = vec![("keys".to_owned(), Ok(Some(secret(&json!({"k": "djE="})))))];
        (server, observed)
    };
    let known = {
        let (server, observed) = base();
        hash(&server, &observed)
    };
    let same: [(&str, Edit); 10] = [
        ("the order of keys", |server, _| {
            server.spec.config = "d: text\na: {c: [x, y], b: 1}".into();
        }),
        ("comments and style", |server, _| {
            server.spec.config = "# why\na:\n  b: 1\n  c:\n  - x\n  - y\nd: \"text\"\n".into();
        }),
        ("replicas", |server, _| server.spec.replicas = 0),
        ("the image", |server, _| server.spec.image = "other".into()),
        ("ports", |server, _| server.spec.api_port = 1),
        ("the database", |server, _| server.spec.percona.enabled = true),
        ("labels of the server", |server, _| {
            server.metadata.labels = Some([("a".into(), "b".into())].into());
        }),
        ("the generation", |server, _| server.metadata.generation = Some(99)),
        ("labels of a Secret", |_, observed| {
            let mut labelled = secret(&json!({"k": "djE="}));
            labelled.metadata.labels = Some([("a".into(), "b".into())].into());
            labelled.metadata.resource_version = Some("99".into());
            observed.secrets[0].1 = Ok(Some(labelled));
        }),
        ("what else is there", |_, observed| {
            observed.database = Ok(Database::Absent);
        }),
    ];
    for (what, edit) in same {
        let (mut server, mut observed) = base();
        edit(&mut server, &mut observed);
        assert_eq!(hash(&server, &observed), known, "{what}");
    }
    let different: [(&str, Edit); 6] = [
        ("a value", |server, _| {
            server.spec.config = "a: {b: 2, c: [x, y]}\nd: text".into();
        }),
        ("the order of a list", |server, _| {
            server.spec.config = "a: {b: 1, c: [y, x]}\nd: text".into();
        }),
        ("a key less", |server, _| {
            server.spec.config = "a: {b: 1, c: [x, y]}".into();
        }),
        ("a Secret's value", |_, observed| {
            observed.secrets[0].1 = Ok(Some(secret(&json!({"k": "djI="}))));
        }),
        ("a Secret's key", |_, observed| {
            observed.secrets[0].1 = Ok(Some(secret(&json!({"l": "djE="}))));
        }),
        ("another Secret", |_, observed| observed.secrets[0].0 = "others".into()),
    ];
    let mut hashes = BTreeSet::from([known]);
    for (what, edit) in different {
        let (mut server, mut observed) = base();
        edit(&mut server, &mut observed);
        assert!(hashes.insert(hash(&server, &observed)), "{what}");
    }
}

#[test]
fn every_object_but_the_database_goes_with_the_server() {
    let mut server = server("files");
    server.metadata.uid = Some("u".to_owned());
    let [nfs, headless, api] = objects::services(&server);
    for object in [
        objects::config_map(&server),
        nfs,
        headless,
        api,
        objects::stateful_set(&server, "h"),
    ] {
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["uid"]),
            (&json!("DittoServer"), &json!("u")),
            "{object}"
        );
    }
    let database = objects::database(&server);
    assert!(database["metadata"].get("ownerReferences").is_none());
    let names: Vec<Value> = objects::services(&server)
        .iter()
        .map(|service| service["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["files", "files-headless", "files-api"]);
}

#[test]
fn the_phase_follows_from_spec_and_conditions() {
    use ServerCondition::{Available, ConfigReady, Ready};
    use ServerReason::{
        AllSystemsGo, ConfigUnknown, InvalidConfig, SecretNotFound, StatefulSetNotReady, StatefulSetRefused,
        StorageClassNotFound,
    };
    let good = |type_, reason| Draft::good(type_, reason);
    let bad = |type_, reason| Draft::bad(type_, reason);
    let table = [
        ("nothing known", vec![], 1, false, Phase::Pending),
        ("ready", vec![good(Ready, AllSystemsGo)], 1, false, Phase::Running),
        ("stopped", vec![good(Ready, AllSystemsGo)], 0, false, Phase::Stopped),
        ("deleted", vec![good(Ready, AllSystemsGo)], 0, true, Phase::Deleting),
        (
            "bad config",
            vec![bad(ConfigReady, InvalidConfig)],
            1,
            false,
            Phase::Failed,
        ),
        (
            "no secret",
            vec![bad(ConfigReady, SecretNotFound)],
            1,
            false,
            Phase::Failed,
        ),
        (
            "not the user's fault",
            vec![Draft::unknown(ConfigReady, ConfigUnknown)],
            1,
            false,
            Phase::Pending,
        ),
        (
            "starting",
            vec![bad(Available, StatefulSetNotReady)],
            1,
            false,
            Phase::Pending,
        ),
        (
            "refused",
            vec![bad(Available, StatefulSetRefused)],
            1,
            false,
            Phase::Failed,
        ),
        (
            "no class",
            vec![bad(Available, StorageClassNotFound)],
            1,
            false,
            Phase::Failed,
        ),
        (
            "stopped and broken",
            vec![bad(ConfigReady, InvalidConfig)],
            0,
            false,
            Phase::Stopped,
        ),
    ];
    for (case, drafts, replicas, deleted, expected) in table {
        let mut server = server("files");
        server.spec.replicas = replicas;
        server.metadata.deletion_timestamp = deleted.then_some(Time(Timestamp::UNIX_EPOCH));
        let conditions: Vec<_> = drafts
            .into_iter()
            .map(|draft| draft.into_condition(1, Timestamp::UNIX_EPOCH))
            .collect();
        assert_eq!(phase(&server, &conditions), expected, "{case}");
    }
}

#[test]
fn the_plan_holds_back_what_must_wait_and_leaves_alone_what_it_cannot_see() {
    let kinds = |plan: &Plan| -> Vec<String> { plan.steps.iter().map(Step::target).collect() };
    let mut with_database = server("files");
    with_database.spec.percona.enabled = true;
    let mut with_class = server("files");
    with_class.spec.storage.storage_class_name = Some("fast".to_owned());
    let mut broken = server("files");
    broken.spec.config = "[".to_owned();
    let base: [&'static str; 4] = [
        "ConfigMap files-config",
        "Service files",
        "Service files-headless",
        "Service files-api",
    ];
    let and = |more: &[&'static str]| [&base[..], more].concat();
    let absent = Observation {
        database: Ok(Database::Absent),
        ..nothing()
    };
    let blind = Observation {
        config_map: Err("no answer".into()),
        services: vec![Err("no answer".into()); 3],
        stateful_set: Err("no answer".into()),
        database: Err("no answer".into()),
        ..nothing()
    };
    for (case, server, observed, expected) in [
        (
            "a new server",
            &server("files"),
            &nothing(),
            and(&["StatefulSet files"]),
        ),
        ("no Percona", &with_database, &nothing(), and(&[])),
        (
            "no database yet",
            &with_database,
            &absent,
            [&["PerconaPGCluster files-postgres"], &base[..]].concat(),
        ),
        ("no class", &with_class, &nothing(), and(&[])),
        ("bad configuration", &broken, &nothing(), base[1..].to_vec()),
        ("no answers", &with_database, &blind, vec![]),
    ] {
        assert_eq!(kinds(&Plan::of(server, observed)), expected, "{case}");
    }
}

#[test]
fn a_size_that_the_api_server_writes_another_way_is_no_difference() {
    let mut server = server("files");
    server.metadata.uid = Some("u".to_owned());
    server.spec.storage.size = "1024Mi".to_owned();
    let hash = hash(&server, &nothing());
    let mut set = objects::stateful_set(&server, &hash);
    set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = json!("1Gi");
    let is_server = |observed: &Observation| Plan::of(&server, observed).steps.iter().any(Step::is_server);
    let observed = Observation {
        stateful_set: Ok(serde_json::from_value(set.clone()).unwrap()),
        ..nothing()
    };
    assert!(!is_server(&observed));
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("edited");
    let observed = Observation {
        stateful_set: Ok(serde_json::from_value(set).unwrap()),
        ..nothing()
    };
    assert!(is_server(&observed), "an edit of the rest is one");
}

#[test]
fn every_reason_is_declared_for_a_condition() {
    let used: BTreeSet<&str> = ServerCondition::ALL
        .iter()
        .flat_map(|type_| type_.reasons())
        .map(|reason| reason.name())
        .collect();
    let all: BTreeSet<&str> = ServerReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(used, all);
}
