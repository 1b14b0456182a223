//! Every namespace has a service account named `default`.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::ResourceExt;

use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer};

/// The controller of default service accounts; its keys are namespaces.
pub struct Accounts {
    plane: Plane,
}

impl Accounts {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self { plane: plane.clone() }
    }

    /// Queues the namespace of an account that was deleted.
    pub fn concerned(_: &Plane, account: &ServiceAccount, queue: &Queue<ObjectKey>) {
        if account.name_any() == "default" {
            queue.add(ObjectKey::new("", account.namespace().unwrap_or_default()));
        }
    }
}

fn is_active(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}

impl Controller for Accounts {
    const NAME: &'static str = "serviceaccount";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let caches = &self.plane.caches;
        if !caches
            .namespaces
            .get(key)
            .is_some_and(|namespace| is_active(&namespace))
            || caches.service_accounts.find(&key.name, "default").is_some()
        {
            return Ok(None);
        }
        let mut account = ServiceAccount::default();
        account.metadata.name = Some("default".into());
        account.metadata.namespace = Some(key.name.clone());
        let writer = Writer::within(&self.plane.client, &key.name, &caches.service_accounts);
        match writer.create(&account).await {
            Err(error) if !error.already_exists() => Err(error),
            _ => Ok(None),
        }
    }
}
