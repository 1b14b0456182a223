//! Who may do what: certificates, tokens, RBAC and the reviews.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kube_sandbox::Sandbox;
use serde_json::json;

use crate::common::typed;

async fn config(kubeconfig: &str) -> Config {
    let parsed = Kubeconfig::from_yaml(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .unwrap()
}

fn rejection(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("not an API error: {other}"),
    }
}

/// A sandbox with a service account that may read `ConfigMaps` of its namespace, and a client with its token.
async fn with_account() -> (Sandbox, Client, String) {
    let sandbox = Sandbox::bare().await.unwrap();
    let admin = sandbox.client();
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
    accounts
        .create(&PostParams::default(), &typed(json!({"metadata": {"name": "reader"}})))
        .await
        .unwrap();
    let roles: Api<Role> = Api::namespaced(admin.clone(), "default");
    let role = json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    roles.create(&PostParams::default(), &typed(role)).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(admin, "default");
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    });
    bindings.create(&PostParams::default(), &typed(binding)).await.unwrap();
    let request: TokenRequest = typed(json!({"spec": {"audiences": [], "expirationSeconds": 600}}));
    let answer = accounts
        .create_token_request("reader", &PostParams::default(), &request)
        .await
        .unwrap();
    let token = answer.status.unwrap().token;
    let mut config = config(sandbox.kubeconfig()).await;
    config.auth_info = kube::config::AuthInfo {
        token: Some(token.clone().into()),
        ..Default::default()
    };
    let client = Client::try_from(config).unwrap();
    (sandbox, client, token)
}

#[tokio::test]
async fn a_service_account_may_do_what_its_roles_allow_and_nothing_else() {
    let (_sandbox, client, _) = with_account().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.list(&ListParams::default()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    assert_eq!(
        rejection(secrets.get("x").await.unwrap_err()),
        (
            403,
            "secrets \"x\" is forbidden: User \"system:serviceaccount:default:reader\" cannot get resource \
             \"secrets\" in API group \"\" in the namespace \"default\""
                .into()
        )
    );
    let everywhere: Api<ConfigMap> = Api::all(client);
    assert_eq!(
        rejection(everywhere.list(&ListParams::default()).await.unwrap_err()),
        (
            403,
            "configmaps is forbidden: User \"system:serviceaccount:default:reader\" cannot list resource \
             \"configmaps\" in API group \"\" at the cluster scope"
                .into()
        )
    );
}

#[tokio::test]
async fn an_apply_that_makes_something_needs_the_right_to_create_it() {
    let (sandbox, client, _) = with_account().await;
    let roles: Api<Role> = Api::namespaced(sandbox.client(), "default");
    let grant = async |verbs: &[&str]| {
        let rules = json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]});
        let granted = roles
            .patch("reader", &PatchParams::default(), &Patch::Merge(rules))
            .await;
        granted.unwrap();
    };
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let apply = async || {
        let map: ConfigMap = typed(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}));
        maps.patch("made", &PatchParams::apply("reader"), &Patch::Apply(&map))
            .await
    };
    grant(&["patch"]).await;
    let (code, message) = rejection(apply().await.unwrap_err());
    assert_eq!((code, message.trim_end()), (403, "configmaps \"made\" is forbidden:"));
    grant(&["patch", "create"]).await;
    apply().await.unwrap();
    grant(&["patch"]).await;
    apply().await.unwrap();
}

#[tokio::test]
async fn a_list_of_one_name_needs_the_right_to_list_that_name() {
    let (sandbox, client, _) = with_account().await;
    let roles: Api<Role> = Api::namespaced(sandbox.client(), "default");
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"],
        "verbs": ["list"]}]});
    let granted = roles
        .patch("reader", &PatchParams::default(), &Patch::Merge(rules))
        .await;
    granted.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
    maps.list(&named("mine")).await.unwrap();
    for params in [named("other"), ListParams::default()] {
        assert_eq!(rejection(maps.list(&params).await.unwrap_err()).0, 403);
    }
}

#[tokio::test]
async fn a_token_ends_with_its_account() {
    let (sandbox, client, token) = with_account().await;
    let reviews: Api<TokenReview> = Api::all(sandbox.client());
    let review: TokenReview = typed(json!({"spec": {"token": token}}));
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    let status = answer.status.unwrap();
    assert_eq!(status.authenticated, Some(true));
    assert_eq!(
        status.user.unwrap().username.as_deref(),
        Some("system:serviceaccount:default:reader")
    );
    let accounts: Api<ServiceAccount> = Api::namespaced(sandbox.client(), "default");
    accounts.delete("reader", &DeleteParams::default()).await.unwrap();
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    assert_ne!(answer.status.unwrap().authenticated, Some(true));
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(rejection(maps.list(&ListParams::default()).await.unwrap_err()).0, 401);
}

#[tokio::test]
async fn certificates_name_users_and_groups() {
    let sandbox = Sandbox::bare().await.unwrap();
    let kubeconfig = sandbox.kubeconfig_for("jane", &["devs"]).unwrap();
    let client = Client::try_from(config(&kubeconfig).await).unwrap();
    let selves: Api<SelfSubjectReview> = Api::all(client.clone());
    let me = selves.create(&PostParams::default(), &typed(json!({}))).await.unwrap();
    let user = me.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert_eq!(user.groups.unwrap(), ["devs", "system:authenticated"]);
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    assert_eq!(rejection(maps.list(&ListParams::default()).await.unwrap_err()).0, 403);
}

#[tokio::test]
async fn without_a_name_there_is_little_to_see() {
    let sandbox = Sandbox::bare().await.unwrap();
    let mut config = config(sandbox.kubeconfig()).await;
    config.auth_info = kube::config::AuthInfo::default();
    let client = Client::try_from(config).unwrap();
    assert!(client.apiserver_version().await.is_ok());
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let (code, message) = rejection(maps.list(&ListParams::default()).await.unwrap_err());
    assert_eq!(code, 403);
    assert!(message.contains("system:anonymous"), "{message}");
}

#[tokio::test]
async fn reviews_answer_what_the_server_would_decide() {
    let (sandbox, client, _) = with_account().await;
    let selves: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    for (verb, resource, expected) in [
        ("get", "configmaps", true),
        ("delete", "configmaps", false),
        ("get", "pods", false),
    ] {
        let attributes = json!({"verb": verb, "resource": resource, "namespace": "default"});
        let review = typed(json!({"spec": {"resourceAttributes": attributes}}));
        let answer = selves.create(&PostParams::default(), &review).await.unwrap();
        assert_eq!(answer.status.unwrap().allowed, expected, "{verb} {resource}");
        let others: Api<SubjectAccessReview> = Api::all(sandbox.client());
        let user = "system:serviceaccount:default:reader";
        let review = typed(json!({"spec": {"user": user, "resourceAttributes": attributes}}));
        let answer = others.create(&PostParams::default(), &review).await.unwrap();
        assert_eq!(
            answer.status.unwrap().allowed,
            expected,
            "{verb} {resource} asked by another"
        );
    }
    let rules: Api<SelfSubjectRulesReview> = Api::all(client);
    let answer = rules
        .create(
            &PostParams::default(),
            &typed(json!({"spec": {"namespace": "default"}})),
        )
        .await
        .unwrap();
    let resources = answer.status.unwrap().resource_rules;
    assert!(
        resources
            .iter()
            .any(|r| r.resources.as_deref() == Some(&["configmaps".to_owned()][..]))
    );
}
