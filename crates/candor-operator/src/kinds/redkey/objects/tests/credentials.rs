//! Robin's token and certificate, and the password of the servers.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ring::rand::SystemRandom;
use serde_json::json;
use valkey_admin::client::Tls;

use super::super::credentials::{RobinCredentials, SecretError, password_of};
use super::{text, with_password};

fn secret(entries: &[(&str, &str)]) -> Secret {
    let data = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret {
        data: Some(data.collect()),
        ..Secret::default()
    }
}

#[test]
fn a_generated_certificate_belongs_to_its_key_and_no_two_are_alike() {
    let random = SystemRandom::new();
    let (one, other) = (
        RobinCredentials::generate("c", &random).unwrap(),
        RobinCredentials::generate("c", &random).unwrap(),
    );
    let usable = Tls::new(
        one.certificate.as_bytes(),
        one.certificate.as_bytes(),
        one.private_key.as_bytes(),
        &[],
    );
    assert!(usable.is_ok(), "{:?}", usable.err());
    assert!(one.token != other.token && one.certificate != other.certificate && one.token.len() == 64);
    assert!(!format!("{one:?}").contains(&one.token));
}

#[test]
fn credentials_are_read_back_and_a_rotation_keeps_the_previous_ones() {
    let random = SystemRandom::new();
    let mut made = with_password(json!({}), None);
    made.credentials = RobinCredentials::generate("c", &random).unwrap();
    let stored = made.objects().robin.secret;
    assert_eq!(RobinCredentials::from_secret(&stored).as_ref(), Some(&made.credentials));
    let before = made.credentials.clone();
    made.credentials = before.rotate("c", &random).unwrap();
    let stored = made.objects().robin.secret;
    let after = RobinCredentials::from_secret(&stored).unwrap();
    assert_eq!(after.previous, Some((before.token.clone(), before.certificate)));
    assert_ne!(after.token, before.token);
    assert_eq!(RobinCredentials::from_secret(&Secret::default()), None);
    assert_eq!(RobinCredentials::from_secret(&secret(&[("token", "")])), None);
}

#[test]
fn servers_include_their_password_as_a_part_of_the_configuration() {
    let stored = with_password(json!({}), Some("a \"b\" \\")).objects().robin.secret;
    assert_eq!(
        text(&stored, "auth.conf"),
        "requirepass \"a \\\"b\\\" \\\\\"\nmasterauth \"a \\\"b\\\" \\\\\"\n"
    );
    assert_eq!(text(&stored, "requirepass"), "a \"b\" \\");
    let without = with_password(json!({}), None).objects().robin.secret;
    assert_eq!(
        (text(&without, "auth.conf"), text(&without, "requirepass")),
        (String::new(), String::new())
    );
}

#[test]
fn a_pod_of_a_server_sees_the_password_and_neither_token_nor_key() {
    let pod = with_password(json!({}), Some("p")).pod();
    let volume = &pod["spec"]["volumes"][1];
    assert_eq!(volume["name"], "credentials");
    let keys: Vec<&str> = volume["secret"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["key"].as_str())
        .collect();
    assert_eq!(keys, ["requirepass", "auth.conf"]);
}

#[test]
fn a_secret_without_a_usable_password_says_what_to_do() {
    let name = || "s".to_owned();
    assert_eq!(password_of(None, "s"), Err(SecretError::Missing { name: name() }));
    assert_eq!(
        password_of(Some(&secret(&[("password", "p")])), "s"),
        Err(SecretError::NoKey { name: name() })
    );
    assert_eq!(
        password_of(Some(&secret(&[("requirepass", "\n")])), "s"),
        Err(SecretError::Empty { name: name() })
    );
    let found = password_of(Some(&secret(&[("requirepass", "p w\n")])), "s").unwrap();
    assert_eq!(found.expose(), "p w");
}
