//! Objects from specs: every field appears where the contract says, and the operator's own fields cannot be
//! overridden.

mod adopted_template;
mod credentials;
mod overrides;
mod robin;
mod servers;

use candor_api::redkey::status::ClusterStatus;
use candor_api::{RedkeyCluster, RedkeyClusterSpec};
use serde_json::{Value, json};

use super::super::config::{Merged, Password, Storage, merge};
use super::{BuildError, Inputs, Objects, RobinCredentials, build};

/// A cluster `c` of three primaries, with these fields.
struct Given {
    cluster: RedkeyCluster,
    config: Merged,
    credentials: RobinCredentials,
}

fn given(spec: Value) -> Given {
    with_password(spec, None)
}

fn with_password(mut spec: Value, password: Option<&str>) -> Given {
    let fields = spec.as_object_mut().expect("an object");
    fields.entry("primaries").or_insert(json!(3));
    let spec: RedkeyClusterSpec = serde_json::from_value(spec).expect("a spec");
    let storage = if spec.ephemeral {
        Storage::Ephemeral
    } else {
        Storage::Volume
    };
    let password = password.and_then(Password::new);
    let config = merge(spec.config.as_deref().unwrap_or_default(), storage, password.as_ref());
    let mut cluster = RedkeyCluster::new("c", spec);
    cluster.metadata.namespace = Some("ns".to_owned());
    cluster.metadata.uid = Some("u".to_owned());
    Given {
        cluster,
        config: config.expect("a configuration"),
        credentials: RobinCredentials {
            token: "the-token".to_owned(),
            certificate: "the-certificate".to_owned(),
            private_key: "the-key".to_owned(),
            previous: None,
        },
    }
}

impl Given {
    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            cluster: &self.cluster,
            config: &self.config,
            credentials: &self.credentials,
            robin_image: "candor:1",
            replicas: self.cluster.spec.nodes(),
            status: ClusterStatus::Ready,
            kept: None,
        }
    }

    fn build(&self) -> Result<Objects, BuildError> {
        build(&self.inputs())
    }

    fn objects(&self) -> Objects {
        self.build().expect("objects")
    }

    /// The `StatefulSet`.
    fn set(&self) -> Value {
        json!(self.objects().stateful_set)
    }

    /// The pod template of servers.
    fn pod(&self) -> Value {
        self.set()["spec"]["template"].clone()
    }

    /// The pod template of Robin.
    fn robin(&self) -> Value {
        json!(self.objects().robin.deployment)["spec"]["template"].clone()
    }

    fn notes(&self) -> Vec<String> {
        self.objects().notes.iter().map(ToString::to_string).collect()
    }
}

fn text(secret: &k8s_openapi::api::core::v1::Secret, key: &str) -> String {
    let data = secret.data.as_ref().expect("data");
    String::from_utf8(data[key].0.clone()).expect("text")
}
