//! Bad input gets the real server's code and words. Every row was compared with kube-apiserver 1.34.

use http::Request;
use kube::Client;
use kube_sandbox::Sandbox;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Code, reason and message of the answer.
async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    media: &str,
    body: impl Into<Vec<u8>>,
) -> (u16, String, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(body.into().into())
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(status) => {
            let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
            (code, text("reason"), text("message"))
        }
        Err(_) => (code, String::new(), String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn bodies_that_are_no_objects_are_rejected() {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    let unrecognized =
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error:";
    for (body, message) in [
        ("{\"broken", "unexpected end of JSON input ({\"broken)"),
        ("", "unexpected end of JSON input (<empty>)"),
        (
            "nonsense",
            "invalid character 'o' in literal null (expecting 'u') (6e6f6e73656e7365)",
        ),
    ] {
        assert_eq!(
            ask(&client, "POST", MAPS, "application/json", body).await,
            (400, "BadRequest".into(), format!("{unrecognized} {message}")),
            "{body}"
        );
    }
    let big = map("big")
        .to_string()
        .replace("\"1\"", &format!("\"{}\"", "x".repeat(5_000_000)));
    assert_eq!(
        ask(&client, "POST", MAPS, "application/json", big).await,
        (
            413,
            "RequestEntityTooLarge".into(),
            "Request entity too large: limit is 3145728".into()
        )
    );
    let (code, reason, _) = ask(&client, "POST", MAPS, "text/xml", "<x/>").await;
    assert_eq!((code, reason.as_str()), (415, "UnsupportedMediaType"));
}

#[tokio::test]
async fn objects_must_match_their_path() {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    let mut other_version = map("a");
    other_version["apiVersion"] = json!("v2");
    let mut other_kind = map("a");
    other_kind["kind"] = json!("Nonsense");
    let mut elsewhere = map("a");
    elsewhere["metadata"]["namespace"] = json!("other");
    for (object, message) in [
        (
            other_version,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:110\"",
        ),
        (
            other_kind,
            "Nonsense in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nonsense\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\"",
        ),
        (
            elsewhere,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        let answer = ask(&client, "POST", MAPS, "application/json", object.to_string()).await;
        assert_eq!(answer, (400, "BadRequest".into(), message.into()));
    }
    let path = format!("{MAPS}/b");
    assert_eq!(
        ask(&client, "PUT", &path, "application/json", map("a").to_string()).await,
        (
            400,
            "BadRequest".into(),
            "the name of the object (a) does not match the name on the URL (b)".into()
        )
    );
}

#[tokio::test]
async fn hostile_selectors_and_versions_are_bad_requests() {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    for (query, message) in [
        (
            "labelSelector=((((",
            "found '(', expected: !, identifier, or 'end of string'",
        ),
        ("labelSelector=a%3Db,", "found '', expected: identifier after ','"),
        (
            "labelSelector=a%3Ex",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
        (
            "fieldSelector=foo%3D1",
            "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            "resourceVersion=x",
            "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax",
        ),
    ] {
        let answer = ask(&client, "GET", &format!("{MAPS}?{query}"), "application/json", "").await;
        assert_eq!(answer, (400, "BadRequest".into(), message.into()), "{query}");
    }
    let long = format!("{MAPS}?labelSelector={}", "a,".repeat(20_000));
    assert_eq!(ask(&client, "GET", &long, "application/json", "").await.0, 400);
}

#[tokio::test]
async fn paths_and_methods_that_are_not_served() {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    let no_resource = "the server could not find the requested resource";
    let no_method = "the server does not allow this method on the requested resource";
    for (method, path, expected) in [
        ("GET", "/api/v1/foos", (404, "NotFound", no_resource)),
        ("GET", "/apis/foo.bar/v1/x", (404, "", "404 page not found\n")),
        ("GET", "/nonsense", (404, "", "404 page not found\n")),
        ("POST", "/api/v1/configmaps", (405, "MethodNotAllowed", no_method)),
        ("PUT", "/api/v1/namespaces", (405, "MethodNotAllowed", no_method)),
        ("DELETE", "/api/v1/configmaps", (405, "MethodNotAllowed", no_method)),
    ] {
        let answer = ask(&client, method, path, "application/json", "{}").await;
        assert_eq!(
            answer,
            (expected.0, expected.1.into(), expected.2.into()),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn unknown_fields_are_rejected_reported_or_ignored_as_requested() {
    let sandbox = Sandbox::bare().await.unwrap();
    let client = sandbox.client();
    let mut odd = map("odd");
    odd["foo"] = json!(1);
    let strict = format!("{MAPS}?fieldValidation=Strict");
    assert_eq!(
        ask(&client, "POST", &strict, "application/json", odd.to_string()).await,
        (
            400,
            "BadRequest".into(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\"".into()
        )
    );
    let request = Request::post(format!("{MAPS}?fieldValidation=Warn"))
        .header("content-type", "application/json")
        .body(odd.to_string().into_bytes().into())
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"unknown field \\\"foo\\\"\"");
}
