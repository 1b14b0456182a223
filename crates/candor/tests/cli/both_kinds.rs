//! Clusters of both kinds in one namespace: how a user names them, what each command does with them, and that one kind
//! does not get in the way of the other. There is no operator: the tests write the status.

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt};
use kube_sandbox::Sandbox;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::runner::{Cli, run};

/// An API server with CRDs, and the CLI.
struct Namespace {
    sandbox: Sandbox,
    user: Cli,
}

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

impl Namespace {
    async fn with(crds: &[CustomResourceDefinition]) -> Self {
        let sandbox = Sandbox::bare().await.unwrap();
        let user = Cli::with(Some(sandbox.kubeconfig()));
        let definitions: Api<CustomResourceDefinition> = Api::all(sandbox.client_as("admin", &["system:masters"]));
        for crd in crds {
            definitions.create(&PostParams::default(), crd).await.unwrap();
        }
        Self { sandbox, user }
    }

    fn client(&self) -> Client {
        self.sandbox.client_as("admin", &["system:masters"])
    }

    fn version(kind: &str) -> &'static str {
        match kind {
            "ValkeyCluster" => "valkey.io/v1alpha1",
            _ => "redkey.inditex.dev/v1",
        }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = Self::version(kind).split_once('/').unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::default_namespaced_with(self.client(), &resource)
    }

    /// Creates a cluster and writes its status.
    async fn cluster(&self, kind: &str, name: &str, spec: Value, status: Value) {
        let api = self.api(kind);
        let version = Self::version(kind);
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        make(&api, object).await;
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn spec(&self, kind: &str, name: &str) -> Value {
        let object = self.api(kind).get(name).await.unwrap();
        object.data["spec"].clone()
    }
}

fn ready(reason: &str) -> Value {
    json!([{"type": "Ready", "status": "True", "reason": reason, "message": "well",
        "lastTransitionTime": "2026-02-05T09:00:00Z", "observedGeneration": 1}])
}

fn redkey_status() -> Value {
    let id = |ordinal: u32| format!("{:0<40}", ["a", "b", "c"][ordinal as usize]);
    let shard = |index: u32, slots: &str| {
        json!({"shard": index, "slots": slots, "keys": 100, "members": [
            {"ordinal": index, "nodeId": id(index), "isPrimary": true}]})
    };
    json!({"status": "Ready", "substatus": {}, "nodes": {}, "primaries": 3, "observedGeneration": 1, "formed": true,
        "topology": [shard(0, "0-5460"), shard(1, "5461-10922"), shard(2, "10923-16383")],
        "conditions": ready("RedkeyClusterReady")})
}

/// A cluster `shop` of each kind, a `RedkeyCluster` `cache`, and one that cannot be decoded.
async fn both() -> Namespace {
    // A newer version of the CRD may give a field another type.
    let mut newer = serde_json::to_value(candor_api::RedkeyCluster::crd()).unwrap();
    let fields = newer.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/version");
    *fields.unwrap() = json!({"type": "integer"});
    let crds = [
        candor_api::ValkeyCluster::crd(),
        candor_api::ValkeyNode::crd(),
        serde_json::from_value(newer).unwrap(),
    ];
    let namespace = Namespace::with(&crds).await;
    let valkey = json!({"state": "Ready", "observedGeneration": 1, "conditions": ready("ClusterHealthy")});
    namespace
        .cluster("ValkeyCluster", "shop", json!({"shards": 1}), valkey)
        .await;
    let spec = json!({"primaries": 3, "purgeKeysOnRebalance": false});
    for name in ["shop", "cache"] {
        namespace
            .cluster("RedkeyCluster", name, spec.clone(), redkey_status())
            .await;
    }
    let odd = json!({"primaries": 1, "version": 7});
    namespace
        .cluster("RedkeyCluster", "odd", odd, json!({"status": "Ready"}))
        .await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(namespace.client());
    make(&accounts, json!({"metadata": {"name": "default"}})).await;
    let pods: Api<Pod> = Api::default_namespaced(namespace.client());
    make(
        &pods,
        json!({"metadata": {"name": "cache-0", "labels": {"redkey-cluster-name": "cache",
            "redis.redkeycluster.operator/component": "redis"}}, "spec": {"containers": [{"name": "redis", "image": "redis"}]}}),
    )
    .await;
    namespace
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_of_both_kinds_are_listed_and_named() {
    let namespace = both().await;
    let user = &namespace.user;
    let list = user.run("status").await.well();
    for part in [
        "KIND",
        "vkc   shop",
        "rkcl  shop",
        "rkcl  cache",
        "Note: RedkeyCluster default/odd is not shown: it cannot be decoded",
    ] {
        assert!(list.contains(part), "{part} is missing: {list}");
    }
    let data = user.json("status -A").await;
    assert_eq!(data["clusters"].as_array().unwrap().len(), 3, "{data}");
    for (name, kind) in [
        ("rkcl/shop", "RedkeyCluster"),
        ("redkeycluster/shop", "RedkeyCluster"),
        ("vkc/shop", "ValkeyCluster"),
        ("valkeycluster.valkey.io/shop", "ValkeyCluster"),
        ("cache", "RedkeyCluster"),
    ] {
        let one = user.json(&format!("status {name}")).await;
        assert_eq!(one["kind"], kind, "{name}: {one}");
    }
    for (line, message) in [
        ("status shop", "Name the one that you mean: vkc/shop or rkcl/shop"),
        ("describe shop", "vkc/shop or rkcl/shop"),
        ("pause shop", "vkc/shop or rkcl/shop"),
        (
            "status vkc/cache",
            "there is no ValkeyCluster \"cache\" in namespace default",
        ),
        ("status vkc/cache", "Did you mean rkcl/cache?"),
        ("status cashe", "Did you mean cache?"),
        ("status odd", "RedkeyCluster odd cannot be decoded"),
        (
            "status pod/shop",
            "\"pod\" is not a kind of cluster: write shop, vkc/shop or rkcl/shop",
        ),
    ] {
        let output = user.run(line).await.badly();
        assert!(output.contains(message), "{line}: {output}");
    }
    for (typed, found) in [("c", "cache"), ("rkcl/s", "rkcl/shop"), ("v", "vkc/shop")] {
        let mut completes = user.command(&format!("-- candor status {typed}"));
        completes
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", "2")
            .env("_CLAP_IFS", "\n");
        assert_eq!(run(completes).await.well().trim(), found);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_works_on_a_redkeycluster() {
    let namespace = both().await;
    let user = &namespace.user;
    let one = user.run("status cache --conditions").await.well();
    for part in [
        "default/cache: Ready for ",
        "3 primaries without replicas, all slots served",
        "10923-16383",
        "RedkeyCluster/cache",
    ] {
        assert!(one.contains(part), "{part} is missing: {one}");
    }
    let tree = user.run("describe cache").await.well();
    assert!(
        tree.contains("RedkeyCluster/cache") && tree.contains("Pod/cache-0"),
        "{tree}"
    );
    assert!(user.run("events cache").await.well().contains("No recent events"));
    assert!(user.run("history cache").await.well().contains("Ready"));
    let plan = user.run("plan cache --primaries 5").await.well();
    for part in [
        "from 3 primaries with 0 replicas each to 5 primaries",
        "Move 6553 slots; clients are redirected and lose nothing",
    ] {
        assert!(plan.contains(part), "{part} is missing: {plan}");
    }
    let rejected = user.run("plan cache --primaries 5 --replicas 99").await.well();
    assert!(rejected.contains("to 5 primaries with 99 replicas each"), "{rejected}");
    let manifest = "apiVersion: redkey.inditex.dev/v1\nkind: RedkeyCluster\nmetadata: {name: cache}\nspec: {primaries: 3, \
                    purgeKeysOnRebalance: true, image: \"redis:8.2\"}\n";
    std::fs::write(user.folder.path().join("cache.yaml"), manifest).unwrap();
    let plan = user.run("plan -f cache.yaml").await.well();
    assert!(plan.contains("about 300 keys purged"), "{plan}");
    assert_eq!(
        namespace.spec("RedkeyCluster", "cache").await["primaries"],
        3,
        "nothing was changed"
    );

    assert!(
        user.run("pause rkcl/shop")
            .await
            .well()
            .contains("candor resume rkcl/shop")
    );
    assert_eq!(namespace.spec("RedkeyCluster", "shop").await["paused"], true);
    assert_eq!(namespace.spec("ValkeyCluster", "shop").await.get("paused"), None);
    assert!(user.run("resume rkcl/shop").await.well().contains("is resumed"));
    assert_eq!(namespace.spec("RedkeyCluster", "shop").await["paused"], false);
    let annotated = json!({"metadata": {"annotations": {"redkey.inditex.dev/maintenance": "true"}}});
    let api = namespace.api("RedkeyCluster");
    let patch = Patch::Merge(annotated);
    api.patch("cache", &PatchParams::default(), &patch).await.unwrap();
    assert!(user.run("pause cache").await.well().contains("already"));
    assert!(user.run("resume cache").await.well().contains("is resumed"));
    assert!(user.run("resume cache").await.well().contains("is not paused"));

    let output = user.run("failover cache --shard 0").await.badly();
    assert!(output.contains("has no replica to promote"), "{output}");
    let output = user.run("restart cache").await.badly();
    assert!(
        output.contains("a RedkeyCluster cannot be restarted by request"),
        "{output}"
    );
    user.run("report cache --file cache.tar.gz").await.well();
    let doctor = user.run("doctor").await;
    for part in [
        "cluster cache: Ready",
        "cluster rkcl/shop: Ready",
        "cluster vkc/shop: Ready",
        "default/odd",
    ] {
        assert!(doctor.out.contains(part), "{part} is missing: {doctor:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_other_crd_or_the_right_to_it_valkeyclusters_work_as_before() {
    let crds = [candor_api::ValkeyCluster::crd(), candor_api::ValkeyNode::crd()];
    let namespace = Namespace::with(&crds).await;
    let user = &namespace.user;
    let status = json!({"state": "Ready", "observedGeneration": 1, "conditions": ready("ClusterHealthy")});
    namespace
        .cluster("ValkeyCluster", "shop", json!({"shards": 1}), status)
        .await;
    let list = user.run("status").await.well();
    assert!(
        list.contains("shop") && !list.contains("KIND") && !list.contains("Note:"),
        "{list}"
    );
    for line in ["status shop", "describe shop", "history shop", "status vkc/shop"] {
        user.run(line).await.well();
    }
    let missing = user.run("status rkcl/shop").await.badly();
    assert!(missing.contains("the API server knows no RedkeyCluster"), "{missing}");
    let doctor = user.run("doctor").await;
    assert!(
        doctor.out.contains("is not installed: there can be no RedkeyCluster"),
        "{doctor:?}"
    );

    let definitions: Api<CustomResourceDefinition> = Api::all(namespace.client());
    let crd = candor_api::RedkeyCluster::crd();
    definitions.create(&PostParams::default(), &crd).await.unwrap();
    let roles: Api<Role> = Api::default_namespaced(namespace.client());
    let rules =
        json!([{"apiGroups": ["valkey.io"], "resources": ["valkeyclusters", "valkeynodes"], "verbs": ["get", "list"]}]);
    make(&roles, json!({"metadata": {"name": "valkey"}, "rules": rules})).await;
    let bindings: Api<RoleBinding> = Api::default_namespaced(namespace.client());
    make(
        &bindings,
        json!({"metadata": {"name": "valkey"}, "subjects": [{"kind": "User", "name": "jane"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "valkey"}}),
    )
    .await;
    let jane = namespace.sandbox.kubeconfig_for("jane", &[]).unwrap();
    std::fs::write(user.folder.path().join("jane"), jane).unwrap();
    let list = user.run("status --kubeconfig jane").await.well();
    assert!(list.contains("shop"), "{list}");
    assert!(list.contains("Note: RedkeyClusters are not shown: "), "{list}");
    let one = user.run("status shop --kubeconfig jane").await.well();
    assert!(one.contains("default/shop: Ready"), "{one}");
}
