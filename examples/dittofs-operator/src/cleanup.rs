//! How a server is let go: what must outlive it is made safe, then its pods end, then its database goes if asked.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use kube_status::events::Recorder;
use kube_status::finalizer::{Cleaned, Cleanup, DELETING};
use kube_status::{Conditioned, find};
use serde::de::DeserializeOwned;

use crate::act::act;
use crate::api::DittoServer;
use crate::conditions;
use crate::objects::percona;
use crate::observe::{Database, database};
use crate::plan::disown;

/// The finalizer's name.
pub const FINALIZER: &str = "dittofs.dittofs.com/finalizer";

/// The cleanup of one reconcile.
pub struct Farewell<'a> {
    /// The API.
    pub client: &'a Client,
    /// Where events go.
    pub events: &'a dyn Recorder,
}

impl Cleanup<DittoServer> for Farewell<'_> {
    type Error = String;

    /// Garbage collection deletes whatever has an owner reference once the server is gone. The operator never sets one on a
    /// database. If another client did, it is removed before anything else happens.
    async fn safe_part(&self, server: &DittoServer) -> Result<(), String> {
        let step = match database(self.client, server).await? {
            Database::Present(object) => disown(&object),
            Database::NotInstalled | Database::Absent => None,
        };
        let done = act(self.client, server, step.as_slice()).await;
        done.map_err(|error| error.to_string())
    }

    async fn cleanup(&self, server: &DittoServer) -> Result<Cleaned, String> {
        let database = database(self.client, server).await;
        let ours = database.as_ref().ok().and_then(|database| database.ours(server));
        let is_doomed = server.spec.percona.enabled && server.spec.percona.delete_with_server;
        let is_first_reconcile = find(server.conditions(), DELETING).is_none();
        let about = server.object_ref(&());
        if let Some(kept) = ours.filter(|_| !is_doomed && is_first_reconcile) {
            self.events
                .record(&about, conditions::percona_orphaned(&kept.name_any()));
        }
        let (name, namespace) = (server.name_any(), server.namespace().unwrap_or_default());
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &namespace);
        let found = sets.get_opt(&name).await;
        // A server that drains may still write: its database goes after it.
        if let Some(set) = found.map_err(|error| format!("StatefulSet {name}: {error}"))? {
            delete_unless_deleting(&sets, &set, DeleteParams::foreground()).await?;
            let open = format!("Waiting for the pods of StatefulSet {name} to end");
            return Ok(Cleaned::Pending(open));
        }
        let Some(object) = database
            .as_ref()
            .map_err(Clone::clone)?
            .ours(server)
            .filter(|_| is_doomed)
        else {
            return Ok(Cleaned::Complete);
        };
        let name = object.name_any();
        if object.metadata.deletion_timestamp.is_none() {
            self.events.record(&about, conditions::percona_deleted(&name));
        }
        let clusters = Api::namespaced_with(self.client.clone(), &namespace, &percona());
        delete_unless_deleting(&clusters, object, DeleteParams::background()).await?;
        let open = format!("Waiting for PostgreSQL cluster {name} to be deleted");
        Ok(Cleaned::Pending(open))
    }
}

/// Deletes the observed object, not another of the same name, unless it is terminating or missing.
async fn delete_unless_deleting<K>(api: &Api<K>, object: &K, how: DeleteParams) -> Result<(), String>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    if object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let this_one = how.preconditions(Preconditions {
        uid: object.uid(),
        ..Preconditions::default()
    });
    match api.delete(&object.name_any(), &this_one).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(format!("{}: {error}", object.name_any())),
        Ok(_) => Ok(()),
    }
}
