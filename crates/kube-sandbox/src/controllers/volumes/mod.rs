//! `PersistentVolumes` and claims: binding, making, growing, protecting, giving back.

mod claims;
mod expand;
mod folder;
mod matching;
mod reclaim;

pub use claims::Claims;
pub use reclaim::Volumes;

use kube::Client;
use kube::api::{Api, PostParams};

/// Makes the default class, unless there is one of its name.
pub async fn seed(client: Client) {
    let api = Api::all(client);
    match api.create(&PostParams::default(), &folder::standard_class()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => {
            tracing::warn!(%error, "the default StorageClass could not be made; claims without a class will wait");
        }
    }
}
