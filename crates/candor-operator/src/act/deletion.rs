//! Cleans up a deleted cluster: workloads first, then volumes according to their reclaim policy. Never deletes a volume
//! that is to be retained.

use candor_api::ValkeyCluster;
use candor_api::valkey::spec::ReclaimPolicy;
use candor_engine::outcome::{Failure, ObjectKind};
use kube::ResourceExt;
use kube_status::finalizer::{Cleaned, Cleanup};

use crate::act::apply::{delete, message};
use crate::act::ownership::Owner;
use crate::objects::names;
use crate::observe::pods::member_of;
use crate::observe::volumes;
use crate::observe::workloads::Live;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The cleanup of one cluster.
pub struct Leaving<'a> {
    /// State that all reconciles share.
    pub context: &'a Context,
    /// The cluster's key.
    pub key: &'a ClusterKey,
}

impl Cleanup<ValkeyCluster> for Leaving<'_> {
    type Error = String;

    /// Removes the owner reference from volumes that are to be retained: otherwise garbage collection deletes them with
    /// the cluster.
    async fn safe_part(&self, cluster: &ValkeyCluster) -> Result<(), String> {
        if deletes_volumes(cluster) {
            return Ok(());
        }
        for claim in volumes::claims(self.context, self.key).into_values() {
            if let Some(owners) = volumes::other_owners(&claim, cluster) {
                let freed = volumes::set_owners(self.context, self.key, &claim, &owners).await;
                freed.map_err(|error| message(&error))?;
            }
        }
        Ok(())
    }

    async fn cleanup(&self, cluster: &ValkeyCluster) -> Result<Cleaned, String> {
        let (caches, owner) = (&self.context.caches, Owner::of(self.context, self.key));
        for at in Live::read(self.context, self.key).by_member().into_keys() {
            let name = names::workload(&self.key.name, at);
            self.delete_one(&caches.deployments, ObjectKind::Deployment, &name)
                .await?;
            self.delete_one(&caches.stateful_sets, ObjectKind::StatefulSet, &name)
                .await?;
        }
        for pod in owner.list(&caches.preflights) {
            self.delete_one(&caches.preflights, ObjectKind::PreflightPod, &pod.name_any())
                .await?;
        }
        let pods = caches.pods.list(self.key);
        let members = pods.iter().filter(|pod| member_of(pod, &self.key.name).is_some());
        let left = members.count();
        if left > 0 {
            let pods = if left == 1 { "pod" } else { "pods" };
            return Ok(Cleaned::Pending(format!("Waiting for {left} {pods} to end")));
        }
        if deletes_volumes(cluster) {
            for claim in volumes::claims(self.context, self.key).into_values() {
                self.delete_one(&caches.claims, ObjectKind::Claim, &claim.name_any())
                    .await?;
            }
        }
        Ok(Cleaned::Complete)
    }
}

impl Leaving<'_> {
    async fn delete_one<K: crate::act::apply::Object>(
        &self,
        cache: &crate::runtime::cache::Cache<K>,
        kind: ObjectKind,
        name: &str,
    ) -> Result<(), String> {
        let done = delete(self.context, cache, self.key, kind, name).await;
        done.map(drop).map_err(|Failure { message, .. }| message)
    }
}

/// Whether the cluster's volumes are deleted with it.
pub fn deletes_volumes(cluster: &ValkeyCluster) -> bool {
    let persistence = cluster.spec.persistence.as_ref();
    persistence.and_then(|persistence| persistence.reclaim_policy) == Some(ReclaimPolicy::Delete)
}
