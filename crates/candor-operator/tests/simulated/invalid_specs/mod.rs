//! The API server rejects every invalid value of every field, generated from the schema, before anything runs. The
//! message names the field and says what to write instead.

mod redkey_rules;
mod rules;
mod values;

use candor_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};

use values::Wrong;

/// A dry run: nothing that is sent is stored.
const ATTEMPT: PostParams = PostParams {
    dry_run: true,
    field_manager: None,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_invalid_value_is_rejected_with_what_to_write_instead() {
    let (_sandbox, client) = api_server().await;
    let mut complaints = Vec::new();
    let (mut tried, mut fields) = (0, 0);
    for crd in crds::all() {
        let spec = crds::json(&crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        let api = api_of(&client, &crd);
        let good = values::good(&spec);
        api.create(&ATTEMPT, &object(&crd, &good))
            .await
            .expect("what the wrong values are made from is right");
        fields += values::fields(&spec);
        for wrong in values::wrong(&spec) {
            tried += 1;
            complaints.extend(complaint(&api, &crd, &wrong).await);
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    println!("{tried} wrong values of {fields} fields, all refused with what to write instead");
}

/// What is wrong with the API server's response to an invalid value.
async fn complaint(api: &Api<DynamicObject>, crd: &CustomResourceDefinition, wrong: &Wrong) -> Option<String> {
    let Wrong {
        path,
        message: expected,
        ..
    } = wrong;
    let (code, message) = rejection(api.create(&ATTEMPT, &object(crd, &wrong.spec)).await);
    let fine = code == 422 && message.contains(path) && message.contains(expected);
    (!fine).then(|| format!("{path}: expected 422 and {expected:?}, got {code}: {message}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cel_rule_can_be_violated_and_names_itself() {
    let (_sandbox, client) = api_server().await;
    for crd in crds::all() {
        let violations = match crd.spec.names.kind.as_str() {
            "ValkeyCluster" => rules::VIOLATIONS,
            "RedkeyCluster" => redkey_rules::VIOLATIONS,
            _ => &[],
        };
        let mut declared = rules::messages(&crds::json(&crd));
        declared.sort();
        declared.dedup();
        let mut broken: Vec<String> = violations.iter().map(|one| one.message.to_owned()).collect();
        broken.sort();
        broken.dedup();
        assert_eq!(broken, declared, "every rule has somebody who breaks it");
        break_each(&client, &crd, violations).await;
        println!(
            "{} ways to break {} rules, each answered in the rule's words",
            violations.len(),
            declared.len()
        );
    }
}

async fn break_each(client: &Client, cluster: &CustomResourceDefinition, violations: &[rules::Violation]) {
    let api = api_of(client, cluster);
    for (index, violation) in violations.iter().enumerate() {
        let name = if violation.long_name {
            "n".repeat(53)
        } else {
            format!("c{index}")
        };
        let named = |spec: &str, version: Option<String>| {
            let mut object = object(cluster, &serde_json::from_str(spec).unwrap());
            (object.metadata.name, object.metadata.resource_version) = (Some(name.clone()), version);
            object
        };
        let answer = match violation.before {
            None => api.create(&ATTEMPT, &named(violation.wrong, None)).await,
            Some(before) => {
                let before = named(before, None);
                let there = api
                    .create(&PostParams::default(), &before)
                    .await
                    .expect("what was before is right");
                api.replace(
                    &name,
                    &ATTEMPT,
                    &named(violation.wrong, there.metadata.resource_version),
                )
                .await
            }
        };
        let (code, message) = rejection(answer);
        assert!(
            code == 422 && message.contains(violation.message),
            "{}: {code} {message}",
            violation.message
        );
    }
}

async fn api_server() -> (Sandbox, Client) {
    let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
    let client = sandbox.client_as("admin", &["system:masters"]);
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds::all() {
        api.create(&PostParams::default(), &crd).await.unwrap();
    }
    (sandbox, client)
}

fn api_of(client: &Client, crd: &CustomResourceDefinition) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &resource(crd))
}

fn resource(crd: &CustomResourceDefinition) -> ApiResource {
    let version = crd.spec.versions[0].name.clone();
    ApiResource {
        group: crd.spec.group.clone(),
        api_version: format!("{}/{version}", crd.spec.group),
        version,
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
    }
}

fn object(crd: &CustomResourceDefinition, spec: &Value) -> DynamicObject {
    DynamicObject::new("tried", &resource(crd)).data(json!({ "spec": spec }))
}

fn rejection(answer: Result<DynamicObject, kube::Error>) -> (u16, String) {
    match answer {
        Ok(_) => (200, "accepted".to_owned()),
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(other) => (0, other.to_string()),
    }
}
