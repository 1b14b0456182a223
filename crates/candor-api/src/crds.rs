//! The CRDs, as `deploy/crds` holds them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{ValkeyCluster, ValkeyNode};

/// Every CRD, in the order they are applied.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![ValkeyCluster::crd(), ValkeyNode::crd()]
}

/// The file a CRD is kept in: `valkey.io_valkeyclusters.yaml`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// A CRD as YAML.
pub fn yaml(crd: &CustomResourceDefinition) -> Result<String, serde_norway::Error> {
    serde_norway::to_string(crd)
}
