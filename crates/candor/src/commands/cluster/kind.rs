//! The kinds of clusters: their names, labels, advice and events.

use candor_api::redkey::{self, COMPONENT_LABEL, REDIS};
use candor_api::valkey::advice::Advice;
use candor_api::{RedkeyCluster, ValkeyCluster, valkey};
use candor_operator::kinds::redkey::objects::names as redkey_names;
use candor_operator::objects::{labels, names};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ApiResource;
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::MemberId;

/// A kind of cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Kind {
    /// `valkey.io/v1alpha1`.
    ValkeyCluster,
    /// `redkey.inditex.dev/v1`.
    RedkeyCluster,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::ValkeyCluster, Self::RedkeyCluster];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ValkeyCluster => "ValkeyCluster",
            Self::RedkeyCluster => "RedkeyCluster",
        }
    }

    /// The short name that kubectl takes.
    pub const fn short(self) -> &'static str {
        match self {
            Self::ValkeyCluster => "vkc",
            Self::RedkeyCluster => "rkcl",
        }
    }

    /// The kind that a user names as kubectl allows it: by its short name, singular, plural or kind, with its group or
    /// without.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        Self::ALL.into_iter().find(|kind| {
            let resource = kind.resource();
            let names = [kind.short(), &kind.name().to_lowercase(), &resource.plural].map(str::to_owned);
            names
                .iter()
                .any(|name| text == *name || text == format!("{name}.{}", resource.group))
        })
    }

    /// The resource, for requests without a Rust type.
    pub fn resource(self) -> ApiResource {
        match self {
            Self::ValkeyCluster => ApiResource::erase::<ValkeyCluster>(&()),
            Self::RedkeyCluster => ApiResource::erase::<RedkeyCluster>(&()),
        }
    }

    /// Its `apiVersion`.
    pub fn api_version(self) -> String {
        match self {
            Self::ValkeyCluster => ValkeyCluster::api_version(&()).into_owned(),
            Self::RedkeyCluster => RedkeyCluster::api_version(&()).into_owned(),
        }
    }

    /// What a shard of it is called, in the singular.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ValkeyCluster => "shard",
            Self::RedkeyCluster => "primary",
        }
    }

    /// The fields of its spec with the numbers of shards and of replicas.
    pub const fn shape_fields(self) -> (&'static str, &'static str) {
        match self {
            Self::ValkeyCluster => ("shards", "replicas"),
            Self::RedkeyCluster => ("primaries", "replicasPerPrimary"),
        }
    }

    /// Selects the objects of a cluster.
    pub fn selector(self, cluster: &str) -> String {
        match self {
            Self::ValkeyCluster => format!("{}={cluster}", labels::CLUSTER),
            Self::RedkeyCluster => format!("{}={cluster}", redkey::CLUSTER_LABEL),
        }
    }

    /// The volume claim of a member.
    pub fn claim(cluster: &str, member: MemberId) -> String {
        match member {
            MemberId::Place(place) => names::claim(cluster, place),
            MemberId::Ordinal(ordinal) => redkey_names::claim(cluster, ordinal),
        }
    }

    /// Selects the pods of its members.
    pub fn member_selector(self, cluster: &str) -> String {
        match self {
            Self::ValkeyCluster => self.selector(cluster),
            Self::RedkeyCluster => format!("{},{COMPONENT_LABEL}={REDIS}", self.selector(cluster)),
        }
    }

    /// The member that runs in a pod.
    pub fn member_of(self, pod: &Pod) -> Option<MemberId> {
        match self {
            Self::ValkeyCluster => labels::member_of(pod.labels()).map(MemberId::Place),
            Self::RedkeyCluster => {
                let is_server = pod.labels().get(COMPONENT_LABEL).is_none_or(|one| one == REDIS);
                let cluster = pod.labels().get(redkey::CLUSTER_LABEL)?;
                let ordinal = super::redkey::ordinal(cluster, &pod.name_any())?;
                is_server.then_some(MemberId::Ordinal(ordinal))
            }
        }
    }

    /// The annotation with which a user requests a failover.
    pub const fn failover_annotation(self) -> &'static str {
        match self {
            Self::ValkeyCluster => valkey::FAILOVER,
            Self::RedkeyCluster => redkey::FAILOVER,
        }
    }

    /// The annotation with which a user acknowledges a data loss.
    pub const fn acknowledge_annotation(self) -> &'static str {
        match self {
            Self::ValkeyCluster => valkey::DATA_LOSS_ACKNOWLEDGED,
            Self::RedkeyCluster => redkey::DATA_LOSS_ACKNOWLEDGED,
        }
    }

    /// What the operator does about a reason, and what a user should do.
    pub fn advice(self, reason: &str) -> Option<Advice> {
        match self {
            Self::ValkeyCluster => super::valkey::advice(reason),
            Self::RedkeyCluster => super::redkey::advice(reason),
        }
    }

    /// Condition types for which `True` means a problem.
    pub fn negative(self) -> Vec<&'static str> {
        match self {
            Self::ValkeyCluster => super::valkey::negative(),
            Self::RedkeyCluster => super::redkey::negative(),
        }
    }

    /// Condition types that are `True` while an operation runs.
    pub const fn operation_types(self) -> &'static [&'static str] {
        match self {
            Self::ValkeyCluster => &["Progressing"],
            Self::RedkeyCluster => &["ScalingUp", "ScalingDown", "Upgrading"],
        }
    }

    /// Condition types that a user must know about in any state, and that are not part of Ready.
    pub const fn aside_types(self) -> &'static [&'static str] {
        match self {
            Self::ValkeyCluster => &["Paused", "DataLost"],
            Self::RedkeyCluster => &["Paused", "DataLost", "RobinReady", "ConfigurationApplied"],
        }
    }

    /// Whether an event reports one of many steps that a user need not know to understand what happened.
    pub fn is_housekeeping(self, event: &str) -> bool {
        match self {
            Self::ValkeyCluster => super::valkey::is_housekeeping(event),
            Self::RedkeyCluster => event == "UpdatePdb",
        }
    }

    /// The state that an event leads to; `None` if it changes no state.
    pub fn state_after(self, event: &str) -> Option<&'static str> {
        match self {
            Self::ValkeyCluster => super::valkey::state_after(event),
            Self::RedkeyCluster => super::redkey::state_after(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;

    use super::*;

    #[test]
    fn short_names_are_those_of_the_crds() {
        for (kind, crd) in [
            (Kind::ValkeyCluster, ValkeyCluster::crd()),
            (Kind::RedkeyCluster, RedkeyCluster::crd()),
        ] {
            assert_eq!(crd.spec.names.short_names.unwrap(), [kind.short()]);
            assert_eq!(crd.spec.names.kind, kind.name());
        }
    }

    #[test]
    fn a_kind_is_named_as_kubectl_allows_it() {
        for (text, kind) in [
            ("vkc", Some(Kind::ValkeyCluster)),
            ("rkcl", Some(Kind::RedkeyCluster)),
            ("redkeycluster", Some(Kind::RedkeyCluster)),
            ("RedkeyCluster", Some(Kind::RedkeyCluster)),
            ("redkeyclusters", Some(Kind::RedkeyCluster)),
            ("redkeycluster.redkey.inditex.dev", Some(Kind::RedkeyCluster)),
            ("valkeyclusters.valkey.io", Some(Kind::ValkeyCluster)),
            ("valkeyclusters.redkey.inditex.dev", None),
            ("pod", None),
            ("", None),
        ] {
            assert_eq!(Kind::parse(text), kind, "{text}");
        }
    }
}
