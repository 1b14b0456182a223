//! How a server is let go: what must outlive it is made safe, then its pods end, then its database goes if asked.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use kube_status::events::Recorder;
use kube_status::finalizer::{Cleaned, Cleanup, DELETING};
use kube_status::{Conditioned, find};

use crate::act::disown;
use crate::api::DittoServer;
use crate::objects::percona;
use crate::observe::{Database, database};
use crate::plan;
use crate::words::Told;

/// The finalizer's name.
pub const FINALIZER: &str = "dittofs.dittofs.com/finalizer";

/// Why a part of the cleanup failed.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    /// The database could not be looked at.
    #[error("{0}")]
    Unread(String),
    /// A read or write failed.
    #[error("{object}: {source}")]
    Api {
        /// What it was about.
        object: String,
        /// What the API server said.
        #[source]
        source: kube::Error,
    },
}

/// The cleanup of one look.
pub struct Farewell<'a> {
    /// The API.
    pub client: &'a Client,
    /// Where events go.
    pub events: &'a dyn Recorder,
}

impl Cleanup<DittoServer> for Farewell<'_> {
    type Error = CleanupError;

    /// Garbage collection takes whatever has an owner reference once the server is gone. The operator never puts one on
    /// a database; should somebody else have, it goes before anything else happens.
    async fn safe_part(&self, server: &DittoServer) -> Result<(), CleanupError> {
        match database(self.client, server).await {
            Database::Unknown(why) => Err(CleanupError::Unread(why)),
            Database::NotInstalled | Database::Absent => Ok(()),
            Database::Present(object) => match plan::disown(&object) {
                Some(patch) => disown(self.client, server, &patch)
                    .await
                    .map_err(|source| about(&object.name_any(), source)),
                None => Ok(()),
            },
        }
    }

    async fn cleanup(&self, server: &DittoServer) -> Result<Cleaned, CleanupError> {
        let database = database(self.client, server).await;
        let doomed = server.spec.percona.enabled && server.spec.percona.delete_with_server;
        if let Some(kept) = database.ours(server).filter(|_| !doomed && is_first_look(server)) {
            self.tell(server, Told::PerconaOrphaned(kept.name_any()));
        }
        // A server that drains may still write: its database goes after it.
        if !self.has_stopped(server).await? {
            let open = format!("Waiting for the pods of StatefulSet {} to end", server.name_any());
            return Ok(Cleaned::Pending(open));
        }
        match database {
            Database::Unknown(why) => Err(CleanupError::Unread(why)),
            Database::Present(object) if doomed && Database::Present(object.clone()).ours(server).is_some() => {
                self.delete_database(server, &object).await?;
                let open = format!("Waiting for PostgreSQL cluster {} to be deleted", object.name_any());
                Ok(Cleaned::Pending(open))
            }
            _ => Ok(Cleaned::Complete),
        }
    }
}

impl Farewell<'_> {
    /// Asks the `StatefulSet` to go, pods first, and says whether it has gone.
    async fn has_stopped(&self, server: &DittoServer) -> Result<bool, CleanupError> {
        let api: Api<StatefulSet> = Api::namespaced(self.client.clone(), &server.namespace().unwrap_or_default());
        let name = server.name_any();
        let found = api.get_opt(&name).await.map_err(|source| about(&name, source))?;
        let Some(set) = found else { return Ok(true) };
        if set.metadata.deletion_timestamp.is_none() {
            let pods_first = exactly(set.metadata.uid.as_ref(), DeleteParams::foreground());
            gone_is_fine(api.delete(&name, &pods_first).await.map(drop)).map_err(|source| about(&name, source))?;
        }
        Ok(false)
    }

    async fn delete_database(&self, server: &DittoServer, object: &DynamicObject) -> Result<(), CleanupError> {
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let namespace = server.namespace().unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &percona());
        let name = object.name_any();
        self.tell(server, Told::PerconaDeleted(name.clone()));
        let this_one = exactly(object.metadata.uid.as_ref(), DeleteParams::background());
        gone_is_fine(api.delete(&name, &this_one).await.map(drop)).map_err(|source| about(&name, source))
    }

    fn tell(&self, server: &DittoServer, told: Told) {
        self.events.record(&server.object_ref(&()), told.into());
    }
}

fn is_first_look(server: &DittoServer) -> bool {
    find(server.conditions(), DELETING).is_none()
}

/// A delete means the object that was seen, not another of the same name.
fn exactly(uid: Option<&String>, params: DeleteParams) -> DeleteParams {
    params.preconditions(Preconditions {
        uid: uid.cloned(),
        resource_version: None,
    })
}

fn gone_is_fine(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}

fn about(object: &str, source: kube::Error) -> CleanupError {
    CleanupError::Api {
        object: object.to_owned(),
        source,
    }
}
