use k8s_openapi::ByteString;
use serde_json::json;

use super::*;

const CANARY: &str = "canary-7f3e9d1c";

fn secret(value: &str) -> Secret {
    Secret {
        data: Some([("_operator".to_owned(), ByteString(value.as_bytes().to_vec()))].into()),
        ..Secret::default()
    }
}

#[test]
fn a_canary_survives_nowhere() {
    let redactor = Redactor::new(&[secret(CANARY), secret("two \"quoted\" words\\"), secret("abc")]);
    let hash = format!("{:x}", Sha256::digest(CANARY.as_bytes()));
    let encoded = STANDARD.encode(CANARY);
    for text in [
        format!("AUTH failed for {CANARY}"),
        format!("user _operator on #{hash} +ping"),
        format!("data: {encoded}"),
        format!("{{\"password\":\"{CANARY}\"}}"),
        format!("x{CANARY}y"),
        "he said two \"quoted\" words\\ loudly".to_owned(),
        format!("{:?}", "two \"quoted\" words\\"),
    ] {
        let clean = redactor.text(&text);
        assert!(clean.contains(MARK), "{clean}");
        for canary in [CANARY, &hash, &encoded, "quoted"] {
            assert!(!clean.contains(canary), "{clean}");
        }
    }
    let object = redactor.object(json!({"kind": "Secret", "data": {"a": encoded},
        "metadata": {"managedFields": [], "annotations": {"note": CANARY}}}));
    assert!(
        !object.to_string().contains(&encoded) && !object.to_string().contains(CANARY),
        "{object}"
    );
    assert_eq!(
        object.pointer("/data/a").unwrap(),
        &json!(format!("{MARK}, {} bytes", CANARY.len()))
    );
    assert_eq!(
        redactor.object(json!({"x": "abc", "y": "abcd"})),
        json!({"x": MARK, "y": "abcd"})
    );
}

#[test]
fn what_usually_is_secret_is_emptied_though_no_secret_holds_it() {
    let redactor = Redactor::default();
    let object = redactor.object(json!({"spec": {
        "config": {"requirepass": CANARY, "maxmemory": "1gb"},
        "containers": [{"env": [{"name": "DB_PASSWORD", "value": CANARY}, {"name": "HOME", "value": "/data"}]}],
        "users": [{"name": "app", "permissions": format!(">{CANARY}"), "passwordSecret": {"name": "app", "keys": ["app"]}}],
    }}));
    assert!(!object.to_string().contains(CANARY), "{object}");
    for kept in ["1gb", "/data", "\"keys\":[\"app\"]"] {
        assert!(object.to_string().contains(kept), "{object}");
    }
    for text in [
        format!("user app on >{CANARY} ~* +@all"),
        format!("requirepass {CANARY}"),
        format!("--masterauth {CANARY}"),
        format!("cli --password {CANARY} ping"),
        format!("authorization: Bearer {CANARY}"),
        format!("password={CANARY} host=x"),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----"),
    ] {
        let clean = redactor.text(&text);
        assert!(!clean.contains(CANARY), "{clean}");
    }
}

#[test]
fn literal_values_in_env_args_and_annotations_do_not_leave() {
    let redactor = Redactor::default();
    for name in [
        "API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASS",
        "MYSQL_PWD",
        "SENTRY_DSN",
        "DATABASE_URL",
        "STRIPE_KEY",
        "WHATEVER",
    ] {
        let env = redactor.object(json!({"env": [{"name": name, "value": CANARY}]}));
        assert_eq!(env, json!({"env": [{"name": name, "value": MARK}]}));
    }
    let applied = json!({"spec": {"env": [{"name": "API_KEY", "value": CANARY}]}}).to_string();
    let object = redactor.object(json!({
        "metadata": {"annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied, "kapp.k14s.io/original": applied,
            "example.com/api-key": CANARY, "note": "kept"}},
        "spec": {"template": {"metadata": {"annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": applied}},
            "containers": [{
                "args": ["--api-key", CANARY, format!("--db-pass={CANARY}"), format!("AWS_SECRET_ACCESS_KEY={CANARY}"), "--port", "6379"],
                "command": ["sh", "-c", format!("export API_KEY={CANARY}; run --secret-key {CANARY} --verbose")],
            }]}},
    }));
    assert!(!object.to_string().contains(CANARY), "{object}");
    for kept in ["kept", "--port", "6379", "--verbose", "left out"] {
        assert!(object.to_string().contains(kept), "{kept}: {object}");
    }
}

#[test]
fn what_says_how_a_member_runs_stays() {
    let redactor = Redactor::default();
    let object = json!({"spec": {
        "env": [{"name": "VALKEY_DATA", "value": "/data"}, {"name": "THREADS", "value": "4"}, {"name": "DEBUG", "value": "true"}],
        "passwordSecret": {"name": "app", "keys": ["app"]},
        "volumes": [{"secret": {"secretName": "internal-shop-acl"}}],
        "keys": {"readWrite": ["~app:*"]},
        "tolerations": [{"key": "dedicated", "value": "valkey"}],
    }});
    assert_eq!(redactor.object(object.clone()), object);
}

#[test]
fn what_is_no_secret_stays() {
    let redactor = Redactor::new(&[secret(CANARY)]);
    for text in [
        "Cluster is healthy",
        "user default on",
        "lag > 3 s",
        "the password was changed",
        "a -> b",
        "",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}
