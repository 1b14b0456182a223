//! Logins by a Kubernetes token: every user sees what the user's own permissions allow, and no more.

use candor_operator::manifests::{self, Options};
use http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::browser::Browser;
use crate::requests::{ask, send};
use crate::stage::Theatre;

/// An account that may read the clusters of one namespace; returns its token.
async fn account(theatre: &Theatre, name: &str, namespace: &str, resources: &[&str]) -> String {
    let client = theatre.client();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let one = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&PostParams::default(), &one).await.unwrap();
    let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
    let role = json!({"metadata": {"name": name}, "rules": [
        {"apiGroups": ["valkey.io", ""], "resources": resources, "verbs": ["get", "list"]}]});
    roles
        .create(&PostParams::default(), &serde_json::from_value(role).unwrap())
        .await
        .unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace);
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]});
    bindings
        .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    token(&accounts, name).await
}

/// The page's own account with the permissions of an installation, and nothing more; returns its token.
async fn installed(theatre: &Theatre) -> String {
    let options = Options {
        namespace: "default".to_owned(),
        web: true,
        ..Options::default()
    };
    for object in manifests::render(&options) {
        if object["metadata"]["name"] != manifests::WEB {
            continue;
        }
        let made = PostParams::default();
        match object["kind"].as_str().unwrap() {
            "ServiceAccount" => {
                let api: Api<ServiceAccount> = Api::namespaced(theatre.client(), "default");
                api.create(&made, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            "ClusterRole" => {
                let api: Api<ClusterRole> = Api::all(theatre.client());
                api.create(&made, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            "ClusterRoleBinding" => {
                let api: Api<ClusterRoleBinding> = Api::all(theatre.client());
                api.create(&made, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            _ => {}
        }
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(theatre.client(), "default");
    token(&accounts, manifests::WEB).await
}

async fn token(accounts: &Api<ServiceAccount>, name: &str) -> String {
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await;
    answer.unwrap().status.unwrap().token
}

async fn login(theatre: &Theatre, token: &str) -> Result<String, StatusCode> {
    let body = format!("token={token}");
    let answer = send(
        "POST",
        &format!("{}/login", theatre.url),
        &[("origin", theatre.url.as_str())],
        &body,
    )
    .await;
    let cookie = answer
        .headers
        .get("set-cookie")
        .map(|value| value.to_str().unwrap().to_owned());
    let cookie = cookie.ok_or(answer.status)?;
    for part in ["HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(token) && !answer.headers["location"].to_str().unwrap().contains(token));
    Ok(cookie.split(';').next().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_sees_the_clusters_of_permitted_namespaces_and_not_even_the_names_of_others() {
    let mut theatre = Theatre::open("").await;
    let own = installed(&theatre).await;
    theatre.serve_as(&own, "--login --actions").await;
    let namespaces: Api<Namespace> = Api::all(theatre.client());
    let bank = serde_json::from_value(json!({"metadata": {"name": "bank"}})).unwrap();
    namespaces.create(&PostParams::default(), &bank).await.unwrap();
    theatre.create("shop", json!({"shards": 1})).await;
    theatre.create_in("bank", "vault", json!({"shards": 1})).await;
    theatre.ready("shop").await;

    let fleet = ask("GET", &theatre.url, &[]).await;
    assert_eq!(
        (fleet.status, fleet.headers["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/login")
    );
    let stream = ask(
        "GET",
        &format!("{}/stream", theatre.url),
        &[("accept", "text/event-stream")],
    )
    .await;
    assert_eq!(stream.status, StatusCode::UNAUTHORIZED);
    assert_eq!(login(&theatre, "nonsense").await.unwrap_err(), StatusCode::UNAUTHORIZED);

    let keeper = account(
        &theatre,
        "keeper",
        "default",
        &["valkeyclusters", "valkeynodes", "pods", "events"],
    )
    .await;
    let clerk = account(&theatre, "clerk", "bank", &["valkeyclusters"]).await;
    let keeper = login(&theatre, &keeper).await.unwrap();
    let clerk_cookie = login(&theatre, &clerk).await.unwrap();
    for (cookie, seen, hidden) in [
        (&keeper, "shop", ["vault", "bank"]),
        (&clerk_cookie, "vault", ["shop", "/c/default"]),
    ] {
        let fleet = ask("GET", &theatre.url, &[("cookie", cookie)]).await;
        assert_eq!(fleet.status, StatusCode::OK);
        assert!(fleet.body.contains(seen), "{}", fleet.body);
        for name in hidden {
            assert!(!fleet.body.contains(name), "{name} in {}", fleet.body);
        }
    }
    let page = |namespace: &str, name: &str| format!("{}/c/{namespace}/vkc/{name}", theatre.url);
    let own = ask("GET", &page("default", "shop"), &[("cookie", &keeper)]).await;
    assert!(
        own.status == StatusCode::OK && own.body.contains("valkey-shop-0-0"),
        "{}",
        own.body
    );
    let foreign = ask("GET", &page("bank", "vault"), &[("cookie", &keeper)]).await;
    let nothing = ask("GET", &page("bank", "nothing"), &[("cookie", &keeper)]).await;
    assert_eq!(
        (foreign.status, nothing.status),
        (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND)
    );
    assert_eq!(
        foreign.body.replace("vault", "nothing"),
        nothing.body,
        "what exists is not revealed"
    );
    let confirm = format!("{}/confirm?action=pause", page("bank", "vault"));
    assert_eq!(
        ask("GET", &confirm, &[("cookie", &keeper)]).await.status,
        StatusCode::NOT_FOUND
    );

    // The keeper may read, and not change.
    let confirm = ask(
        "GET",
        &format!("{}/confirm?action=pause", page("default", "shop")),
        &[("cookie", &keeper)],
    )
    .await;
    let token = confirm
        .body
        .split("name=\"token\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let body = format!("action=pause&generation=1&token={token}");
    let headers = [("cookie", keeper.as_str()), ("origin", theatre.url.as_str())];
    let change = send("POST", &format!("{}/change", page("default", "shop")), &headers, &body).await;
    assert_eq!(change.status, StatusCode::BAD_REQUEST, "{}", change.body);
    assert!(
        change.body.contains("forbidden") || change.body.contains("cannot patch"),
        "{}",
        change.body
    );

    let browser = Browser::start().await;
    browser.open(&theatre.url).await;
    browser.until_text("h1", "Log in").await;
    browser.is_accessible("login").await;
    let filled = format!(
        "(document.querySelector('#token').value = {}, document.querySelector('form').requestSubmit())",
        json!(clerk)
    );
    browser.value(&filled).await;
    browser.until_text("#main", "vault").await;
    browser.until("document.body.dataset.state === 'live'").await;
    assert_eq!(
        browser
            .value("document.cookie + localStorage.length + sessionStorage.length + location.search")
            .await,
        "00"
    );
    browser.is_accessible("fleet of a user").await;
    browser
        .until("(document.querySelector('form.user').requestSubmit(), true)")
        .await;
    browser.until_text("h1", "Log in").await;
    assert_eq!(
        ask("GET", &theatre.url, &[("cookie", &keeper)]).await.status,
        StatusCode::OK,
        "others stay"
    );
    browser.end().await;
    theatre.close().await;
}
