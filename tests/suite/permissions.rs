//! The operator has the least permissions that work. Every scenario runs with the installed account, so none is
//! missing. This scenario checks that each one is used.

use std::collections::BTreeSet;

use candor_operator::manifests::{NAME, Options, render};
use candor_tests::{Cluster, OperatorOptions, Permission, World, until};
use k8s_openapi::api::core::v1::{Event, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube_sandbox::faults::{Fault, Faults, Rule, Verb};
use serde_json::json;

use crate::tls::{self, certificates::Authority};

/// Everything that an installation grants to its account.
fn granted(options: &Options) -> BTreeSet<Permission> {
    let texts = |value: &serde_json::Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|one| Some(one.as_str()?.to_owned())).collect()
    };
    let objects = render(options);
    let of_people = |name: &str| !name.starts_with(NAME);
    let roles = objects.iter().filter(|object| {
        object["rules"].is_array() && !of_people(object["metadata"]["name"].as_str().unwrap_or_default())
    });
    let mut permissions = BTreeSet::new();
    for role in roles {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        permissions.insert((namespace.to_owned(), group.clone(), resource.clone(), verb));
                    }
                }
            }
        }
    }
    permissions
}

/// Whether a granted permission covers a used one: a cluster-wide permission counts in every namespace.
fn allows(granted: &Permission, used: &Permission) -> bool {
    let same = (&granted.1, &granted.2, &granted.3) == (&used.1, &used.2, &used.3);
    same && (granted.0.is_empty() || granted.0 == used.0)
}

/// Whether the operator has a permission only to grant it to Robin: Kubernetes does not let it grant what it has not.
fn is_for_robin(granted: &Permission) -> bool {
    let robins = [("", "pods"), ("redkey.inditex.dev", "redkeyclusters")];
    granted.3 == "get" && robins.contains(&(granted.1.as_str(), granted.2.as_str()))
}

/// A `RedkeyCluster` with its agent's objects, its finalizer and its status.
async fn redkey(world: &World) {
    let kind = GroupVersionKind::gvk("redkey.inditex.dev", "v1", "RedkeyCluster");
    let kind = ApiResource::from_gvk(&kind);
    let clusters: Api<DynamicObject> = Api::namespaced_with(world.client(), world.namespace(), &kind);
    let spec = json!({"primaries": 1, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "64Mi",
        "deletePVC": true});
    let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
        "metadata": {"name": "other"}, "spec": spec});
    let cluster = serde_json::from_value(cluster).expect("a cluster");
    clusters
        .create(&PostParams::default(), &cluster)
        .await
        .expect("created");
    let bindings: Api<RoleBinding> = Api::namespaced(world.client(), world.namespace());
    until("the agent's permissions and the status", async || {
        let cluster = clusters.get("other").await.ok()?;
        let finalizers = cluster.metadata.finalizers.unwrap_or_default();
        bindings.get_opt("other-robin").await.ok()??;
        (cluster.data["status"].is_object() && !finalizers.is_empty()).then_some(())
    })
    .await;
    clusters
        .delete("other", &DeleteParams::default())
        .await
        .expect("deleted");
    until("the cluster is gone", async || {
        clusters.get_opt("other").await.ok()?.is_none().then_some(())
    })
    .await;
}

/// Rare faults that a client must survive with the same permissions.
fn mishaps() -> Faults {
    Faults::seeded(1)
        .with(
            Rule::new("the finalizer races with another writer")
                .verb(Verb::Patch)
                .resource("valkeyclusters")
                .subresource("")
                .nth(1)
                .then(Fault::conflict()),
        )
        .with(
            Rule::new("an event is written and nobody hears of it")
                .verb(Verb::Create)
                .resource("events")
                .nth(1)
                .then(Fault::LoseResponse),
        )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_right_of_the_operator_is_used() {
    let world = World::prepare("rights").await;
    world.start_operator_with(OperatorOptions {
        identity: Some("first".to_owned()),
        faults: Some(mishaps()),
        ..OperatorOptions::default()
    });
    let secrets: Api<Secret> = Api::namespaced(world.client(), world.namespace());
    let users = json!({"metadata": {"name": "plain-users"}, "stringData": {"alice": "a-word"}});
    let users = serde_json::from_value(users).expect("a Secret");
    secrets.create(&PostParams::default(), &users).await.expect("created");

    let plain = Cluster::new(&world, "plain");
    plain
        .create(json!({"shards": 1, "users": [{"name": "alice", "permissions": "+@all ~*"}]}))
        .await;
    let kept = Cluster::new(&world, "kept");
    let persistence = json!({"size": "64Mi", "reclaimPolicy": "Delete"});
    kept.create(json!({"shards": 2, "persistence": persistence})).await;
    let secure = Cluster::new(&world, "secure");
    let authority = Authority::new("one");
    tls::make(&world, &authority, &authority.issue()).await;
    let networking = json!({"tls": {"certificates": {"server": {"secretName": tls::SECRET}}}});
    secure.create(json!({"shards": 1, "networking": networking})).await;
    plain.ready().await;
    kept.ready().await;
    secure.ready().await;

    // A new certificate: the operator annotates the pods with it.
    let renewed = authority.issue();
    tls::write(&world, &authority.pem(), &renewed).await;
    tls::served(&secure, &renewed).await;

    // The same event recorded twice is one event with a count.
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(world.client(), world.namespace());
    for _ in 0..2 {
        for (mode, there) in [("Disabled", false), ("Cluster", true)] {
            plain.change(json!({"podDisruptionBudget": {"mode": mode}})).await;
            until("the budget follows", async || {
                (budgets.get_opt("valkey-plain").await.ok()?.is_some() == there).then_some(())
            })
            .await;
        }
    }
    let events: Api<Event> = Api::namespaced(world.client(), world.namespace());
    until("an event counted twice", async || {
        let all = events.list(&ListParams::default()).await.ok()?;
        all.items.iter().any(|event| event.count > Some(1)).then_some(())
    })
    .await;

    // The operator validates new scheduling rules with a preflight pod before it rolls the members.
    let nodes = json!({"scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}}});
    plain.change(nodes).await;
    kept.change(json!({"shards": 1})).await;
    kept.ready().await;
    plain.ready().await;
    redkey(&world).await;
    plain.delete().await;
    kept.delete().await;
    secure.delete().await;
    world.stop_operator().await;

    let (granted, used) = (granted(world.options()), world.request_log().used());
    let unused: Vec<_> = granted
        .iter()
        .filter(|right| !is_for_robin(right))
        .filter(|right| !used.iter().any(|used| allows(right, used)))
        .collect();
    let beyond: Vec<_> = used
        .iter()
        .filter(|used| !granted.iter().any(|right| allows(right, used)))
        .collect();
    assert!(unused.is_empty(), "granted and never used: {unused:?}");
    assert!(
        beyond.is_empty(),
        "used and not granted by the installation: {beyond:?}"
    );
    world.end().await;
}
