//! Objects from specs: every field appears where the contract says, and nothing else changes.

mod config;
mod fields;
mod hash;
mod preflight;
mod probes;
mod security;
mod users;

use std::collections::BTreeMap;

use candor_api::{ValkeyCluster, ValkeyClusterSpec};
use candor_engine::model::{MemberRef, ShardIndex};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use valkey_admin::Version;

pub(crate) use security::violations;

use super::{
    Inputs, Problem, Remembered, Settings, SharedObject, SystemPasswords, WorkloadObject, member, settings, shared,
};

const FIRST: MemberRef = MemberRef {
    shard: ShardIndex(0),
    node: 0,
};

/// A spec and the other inputs that objects are built from.
struct Given {
    cluster: ValkeyCluster,
    passwords: SystemPasswords,
    secrets: BTreeMap<String, Secret>,
    remembered: Remembered,
    version: Option<Version>,
}

/// A cluster `c` of one shard, with these fields.
fn given(mut spec: Value) -> Given {
    let fields = spec.as_object_mut().expect("an object");
    fields.entry("shards").or_insert(json!(1));
    let spec: ValkeyClusterSpec = serde_json::from_value(spec).expect("a spec");
    let mut cluster = ValkeyCluster::new("c", spec);
    cluster.metadata.namespace = Some("ns".to_owned());
    cluster.metadata.uid = Some("u".to_owned());
    let password = |of: &str| format!("{of}-secret");
    Given {
        cluster,
        passwords: SystemPasswords {
            operator: password("operator"),
            exporter: password("exporter"),
            replication: password("replication"),
            migrator: password("migrator"),
        },
        secrets: BTreeMap::new(),
        remembered: Remembered::default(),
        version: None,
    }
}

impl Given {
    fn secret(mut self, name: &str, entries: &[(&str, &str)]) -> Self {
        let data = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        self.secrets.insert(name.to_owned(), secret);
        self
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            cluster: &self.cluster,
            image: candor_engine::kinds::valkey::image(&self.cluster),
            exporter_image: "candor:1",
            passwords: &self.passwords,
            secrets: &self.secrets,
            version: self.version,
            remembered: &self.remembered,
        }
    }

    /// The shared objects by kind.
    fn shared(&self) -> Result<BTreeMap<&'static str, Value>, Problem> {
        let json = |object: SharedObject| match object {
            SharedObject::HeadlessService(one) => ("headless", json!(one)),
            SharedObject::ClientService(one) => ("client", json!(one)),
            SharedObject::ConfigMap(one) => ("config", json!(one)),
            SharedObject::AclSecret(one) => ("acl", json!(one)),
            SharedObject::SystemSecret(one) => ("system", json!(one)),
            SharedObject::PodDisruptionBudget(one) => ("budget", json!(one)),
            SharedObject::NoPodDisruptionBudget(name) => ("no budget", json!(name)),
        };
        Ok(shared(&self.inputs())?.into_iter().map(json).collect())
    }

    fn workload(&self, at: MemberRef) -> Result<Value, Problem> {
        Ok(match member(&self.inputs(), at)?.workload {
            WorkloadObject::Deployment(one) => json!(one),
            WorkloadObject::StatefulSet(one) => json!(one),
        })
    }

    fn pod(&self) -> Value {
        self.workload(FIRST).expect("a workload")["spec"]["template"].clone()
    }

    fn settings(&self) -> Settings {
        settings(&self.inputs()).expect("settings")
    }

    /// `valkey.conf`, line by line.
    fn conf(&self) -> Vec<String> {
        let objects = self.shared().expect("shared objects");
        let text = objects["config"]["data"]["valkey.conf"].as_str().expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

fn at(shard: u32, node: u32) -> MemberRef {
    MemberRef {
        shard: ShardIndex(shard),
        node,
    }
}
