//! An operator as a pod: what a process finds of its cluster from inside.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Api, ListParams, LogParams, PostParams};
use kube::{Client, Config};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};

const NAMESPACE: &str = "operators";

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Started by the pod of the test below, which is this program.
#[tokio::test]
#[ignore = "a part of the next test"]
async fn a_process_in_a_pod() {
    let config = Config::incluster().unwrap();
    println!("namespace {}", config.default_namespace);
    let client = Client::try_from(config).unwrap();
    let review: Api<SelfSubjectReview> = Api::all(client.clone());
    let me = review
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    println!("user {}", me.status.unwrap().user_info.unwrap().username.unwrap());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = maps.get("settings").await.unwrap();
    println!("map {}", map.data.unwrap()["a"]);
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let rejected = secrets.list(&ListParams::default()).await.unwrap_err();
    println!("secrets {rejected}");
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    println!("pod {} on {} as {}", env("POD"), env("NODE"), env("ACCOUNT"));
    println!("root is read-only: {}", std::fs::write("/etc/mark", "x").is_err());
    println!("tmp takes files: {}", std::fs::write("/tmp/mark", "x").is_ok());
}

async fn allow_reading_maps(client: &Client) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let post = PostParams::default();
    namespaces
        .create(&post, &typed(json!({"metadata": {"name": NAMESPACE}})))
        .await
        .unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    accounts
        .create(&post, &typed(json!({"metadata": {"name": "operator"}})))
        .await
        .unwrap();
    let roles: Api<Role> = Api::namespaced(client.clone(), NAMESPACE);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    roles
        .create(&post, &typed(json!({"metadata": {"name": "maps"}, "rules": rules})))
        .await
        .unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), NAMESPACE);
    let binding = json!({
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": NAMESPACE}],
    });
    bindings.create(&post, &typed(binding)).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    maps.create(
        &post,
        &typed(json!({"metadata": {"name": "settings"}, "data": {"a": "read"}})),
    )
    .await
    .unwrap();
}

/// This program as a pod, with what a chart for an operator asks for.
fn pod() -> Pod {
    let program = std::env::current_exe().unwrap();
    let (folder, name) = (program.parent().unwrap(), program.file_name().unwrap());
    let command = [
        &format!("/program/{}", name.to_str().unwrap()),
        "incluster::a_process_in_a_pod",
        "--ignored",
        "--exact",
        "--nocapture",
    ];
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    typed(json!({
        "metadata": {"name": "operator-0"},
        "spec": {
            "serviceAccountName": "operator", "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "program", "hostPath": {"path": folder}}, {"name": "tmp", "emptyDir": {}}],
            "containers": [{
                "name": "operator", "image": "debian:12", "command": command,
                "env": [field("POD", "metadata.name"), field("NODE", "spec.nodeName"), field("ACCOUNT", "spec.serviceAccountName")],
                "securityContext": {"readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "program", "mountPath": "/program", "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"}],
            }],
        },
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_a_pod_finds_the_api_server_and_has_the_permissions_of_its_service_account() {
    let sandbox = Sandbox::start().await.unwrap();
    let client = sandbox.client();
    allow_reading_maps(&client).await;
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    pods.create(&PostParams::default(), &pod()).await.unwrap();
    let over = kube::runtime::wait::await_condition(pods.clone(), "operator-0", |pod: Option<&Pod>| {
        let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    });
    let over = tokio::time::timeout(std::time::Duration::from_secs(60), over).await;
    let output = pods.logs("operator-0", &LogParams::default()).await.unwrap_or_default();
    let pod = pods.get("operator-0").await.unwrap();
    assert!(over.is_ok(), "the pod never ended: {pod:#?}\n{output}");
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Succeeded"), "{output}");
    for line in [
        "namespace operators",
        "user system:serviceaccount:operators:operator",
        "map read",
        "cannot list resource \"secrets\" in API group \"\" in the namespace \"operators\"",
        "pod operator-0 on sandbox-0 as operator",
        "root is read-only: true",
        "tmp takes files: true",
    ] {
        assert!(output.contains(line), "`{line}` is missing in\n{output}");
    }
}
