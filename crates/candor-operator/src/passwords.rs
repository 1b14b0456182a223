//! The operator's own passwords: made once, before anything else, and never made anew.

use candor_api::ValkeyCluster;
use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use ring::rand::SystemRandom;

use crate::apply::words;
use crate::cache::ClusterKey;
use crate::context::{Context, MANAGER};
use crate::objects::{SystemPasswords, names, system_secret};

/// The passwords of a cluster, and the change where they had to be made.
pub async fn passwords(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<(SystemPasswords, Option<Change>), Failure> {
    let name = names::system_secret(&key.name);
    if let Some(secret) = context.caches.secrets.get(key, &name) {
        return Ok((read(&secret)?, None));
    }
    let failed = |words: String| Failure {
        object: Some((ObjectKind::SystemSecret, false)),
        words,
    };
    let fresh = SystemPasswords::generate(&SystemRandom::new())
        .map_err(|_| failed("no random numbers could be had from the system".to_owned()))?;
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &system_secret(cluster, &fresh)).await {
        Ok(made) => {
            context.caches.secrets.put(made);
            let change = Change {
                kind: ObjectKind::SystemSecret,
                name,
                did: Did::Created,
            };
            Ok((fresh, Some(change)))
        }
        // Made by an earlier look whose answer was lost: those passwords count, servers may know them.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = api.get(&name).await.map_err(|error| failed(words(&error)))?;
            let there = context.caches.secrets.put(there);
            Ok((read(&there)?, None))
        }
        Err(error) => Err(failed(words(&error))),
    }
}

fn read(secret: &Secret) -> Result<SystemPasswords, Failure> {
    SystemPasswords::from_secret(secret).map_err(|problem| Failure {
        object: Some((ObjectKind::SystemSecret, true)),
        words: problem.to_string(),
    })
}
