//! Service-account tokens: signed here, checked here, bound to objects that must still be there.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::api::{Api, Call};
use super::negotiate::Accepted;
use super::respond::{self, Reply};
use super::user::User;
use super::{body, clock, meta};
use crate::status::{ApiError, Cause};
use crate::store::ObjectKey;

/// The issuer of the tokens, and their audience unless the request names another.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The key that signs tokens; it lives as long as the server.
pub(super) struct TokenKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl TokenKey {
    /// A new key.
    pub fn new() -> Result<Self, ring::error::Unspecified> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
            .map_err(|_| ring::error::Unspecified)?;
        Ok(Self { pair, random })
    }

    fn sign(&self, claims: &Value) -> Result<String, ApiError> {
        let head = URL_SAFE_NO_PAD.encode(json!({"alg": "ES256", "kid": "sandbox", "typ": "JWT"}).to_string());
        let message = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(&self.random, message.as_bytes()).map_err(|_| {
            ApiError::new(
                500,
                "InternalError",
                "Internal error occurred: signing the token failed",
            )
        })?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this key signed.
    fn open(&self, token: &str) -> Option<Value> {
        let (message, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(message.as_bytes(), &signature)
            .ok()?;
        let (_, claims) = message.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

/// A token that was accepted: its user, and which of the requested audiences it is for.
pub(super) struct Verified {
    pub user: User,
    pub audiences: Vec<String>,
}

impl Api {
    /// Verifies a token. `audiences` are those of the caller.
    pub(super) fn verify_token(&self, token: &str, audiences: &[String]) -> Result<Verified, String> {
        let claims = self.token_key().open(token).ok_or("invalid bearer token")?;
        let now = Timestamp::now().as_second();
        if claims["exp"].as_i64().is_none_or(|exp| exp < now) {
            return Err("[invalid bearer token, service account token has expired]".into());
        }
        let meant: Vec<String> = claims["aud"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|a| a.as_str().map(str::to_owned))
            .filter(|a| audiences.contains(a))
            .collect();
        if meant.is_empty() {
            return Err(format!(
                "[invalid bearer token, token audiences {} is invalid for the target audiences {audiences:?}]",
                claims["aud"]
            ));
        }
        let private = &claims["kubernetes.io"];
        let namespace = private["namespace"].as_str().unwrap_or_default();
        let account = &private["serviceaccount"];
        let name = account["name"].as_str().unwrap_or_default();
        self.same(
            "serviceaccounts",
            namespace,
            account,
            "service account token has been invalidated",
        )?;
        let mut user = User::service_account(namespace, name, account["uid"].as_str().unwrap_or_default());
        for (claim, table, within) in [
            ("pod", "pods", namespace),
            ("secret", "secrets", namespace),
            ("node", "nodes", ""),
        ] {
            let bound = &private[claim];
            if bound.is_null() {
                continue;
            }
            if claim != "node" || private["pod"].is_null() {
                self.same(table, within, bound, "service account token has been invalidated")?;
            }
            for (field, key) in [("name", "name"), ("uid", "uid")] {
                if let Some(text) = bound[field].as_str().filter(|_| claim != "secret") {
                    user.extra.insert(
                        format!("authentication.kubernetes.io/{claim}-{key}"),
                        vec![text.to_owned()],
                    );
                }
            }
        }
        if let Some(id) = claims["jti"].as_str() {
            user.extra.insert(
                "authentication.kubernetes.io/credential-id".into(),
                vec![format!("JTI={id}")],
            );
        }
        Ok(Verified { user, audiences: meant })
    }

    fn same(&self, table: &str, namespace: &str, reference: &Value, or_reject: &str) -> Result<(), String> {
        let name = reference["name"].as_str().unwrap_or_default();
        let found = self.store().get(table, &ObjectKey::new(namespace, name));
        if found.is_some_and(|f| f.value()["metadata"]["uid"] == reference["uid"]) {
            return Ok(());
        }
        Err(format!("[invalid bearer token, {or_reject}]"))
    }

    /// `serviceaccounts/token`.
    pub(super) fn request_token(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, false)?;
        let account = self.find(call)?;
        let request = body::parse(&call.headers, "TokenRequest", &call.body)?;
        let spec = &request["spec"];
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
        if seconds < 600 {
            return Err(invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration less than 10 minutes",
            ));
        }
        if seconds > 1 << 32 {
            return Err(invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            ));
        }
        let mut audiences: Vec<Value> = spec["audiences"].as_array().cloned().unwrap_or_default();
        if audiences.is_empty() {
            audiences.push(json!(ISSUER));
        }
        let namespace = call.info.namespace.as_str();
        let name = call.info.name.as_str();
        let now = Timestamp::now();
        let mut private = json!({
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": meta::text(account.value(), "uid")},
        });
        self.bind_token(namespace, name, &spec["boundObjectRef"], &mut private)?;
        let expires = now + SignedDuration::from_secs(seconds);
        let claims = json!({
            "aud": audiences, "exp": expires.as_second(), "iat": now.as_second(), "nbf": now.as_second(),
            "iss": ISSUER, "jti": clock::uid(), "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "kubernetes.io": private,
        });
        let mut answer = json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": clock::seconds(now)},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": spec["boundObjectRef"]},
            "status": {"token": self.token_key().sign(&claims)?, "expirationTimestamp": clock::seconds(expires)},
        });
        answer["metadata"]["uid"] = json!(meta::text(account.value(), "uid"));
        Ok(respond::value(201, accepted, &answer))
    }

    fn bind_token(&self, namespace: &str, account: &str, to: &Value, claims: &mut Value) -> Result<(), ApiError> {
        if to.is_null() {
            return Ok(());
        }
        let kind = to["kind"].as_str().unwrap_or_default();
        let name = to["name"].as_str().unwrap_or_default();
        let (claim, table, within) = match kind {
            "Pod" => ("pod", "pods", namespace),
            "Secret" => ("secret", "secrets", namespace),
            "Node" => ("node", "nodes", ""),
            other => {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token to object of type {}, Kind={other}",
                    to["apiVersion"].as_str().unwrap_or_default()
                )));
            }
        };
        let found = self
            .store()
            .get(table, &ObjectKey::new(within, name))
            .ok_or_else(|| ApiError::not_found("", table, name))?;
        let object = found.value();
        if kind == "Pod" && object["spec"]["serviceAccountName"] != *account {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
            )));
        }
        let uid = meta::text(object, "uid");
        if let Some(expected) = to["uid"].as_str().filter(|w| !w.is_empty() && *w != uid) {
            return Err(ApiError::conflict(
                "",
                table,
                name,
                &format!(
                    "the UID in the bound object reference ({expected}) does not match the UID in record. The object might have been deleted and then recreated"
                ),
            ));
        }
        claims[claim] = json!({"name": name, "uid": uid});
        if let Some(node) = object["spec"]["nodeName"]
            .as_str()
            .filter(|n| kind == "Pod" && !n.is_empty())
        {
            claims["node"] = json!({"name": node});
            if let Some(found) = self.store().get("nodes", &ObjectKey::new("", node)) {
                claims["node"]["uid"] = json!(meta::text(found.value(), "uid"));
            }
        }
        Ok(())
    }
}

fn invalid(field: &str, value: i64, why: &str) -> ApiError {
    ApiError::invalid(
        "authentication.k8s.io",
        "TokenRequest",
        "",
        &[Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {value}: {why}"),
            field: field.into(),
        }],
    )
}
