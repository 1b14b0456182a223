//! The objects that all members share.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_api::valkey::spec::BudgetMode;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::live_settings::Remembered;
use super::system_users::{REPLICATION, SystemPasswords};
use super::{Inputs, PORT, Problem, acl, config, labels, names};

/// The key of the `ConfigMap` with the configuration.
pub(super) const CONFIG_KEY: &str = "valkey.conf";

/// The key of the Secret with the users.
const USERS_KEY: &str = "users.acl";
/// The key of the same Secret with the credentials of a replica.
const REPLICATION_FILE: &str = "replication.conf";
/// The key of the same Secret with the password of the probes.
pub(super) const EXPORTER_PASSWORD: &str = "exporter-password";

/// The scripts that run in a pod, by their keys in the `ConfigMap`.
pub(super) const SCRIPTS: [(&str, &str); 5] = [
    ("lib.sh", include_str!("scripts/lib.sh")),
    ("guard.sh", include_str!("scripts/guard.sh")),
    ("start.sh", include_str!("scripts/start.sh")),
    ("alive.sh", include_str!("scripts/alive.sh")),
    ("ready.sh", include_str!("scripts/ready.sh")),
];

/// One shared object of a cluster.
// Only a few values exist at a time, so boxing the large variants has no benefit.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum SharedObject {
    /// The headless Service with every member, ready or not.
    HeadlessService(Service),
    /// The Service for clients, with only ready members.
    ClientService(Service),
    /// The configuration and the scripts.
    ConfigMap(ConfigMap),
    /// Files that only a starting server may read.
    AclSecret(Secret),
    /// The passwords of the operator's own users.
    SystemSecret(Secret),
    /// Limits evictions to one member at a time.
    PodDisruptionBudget(PodDisruptionBudget),
    /// No `PodDisruptionBudget` of this name may exist.
    NoPodDisruptionBudget(String),
}

/// All shared objects in the order in which they are needed: Secrets and configuration before the Services.
pub fn shared(inputs: &Inputs<'_>) -> Result<Vec<SharedObject>, Problem> {
    certificates(inputs)?;
    Ok(vec![
        SharedObject::SystemSecret(system_secret(inputs.cluster, inputs.passwords)),
        SharedObject::AclSecret(acl_secret(inputs)?),
        SharedObject::ConfigMap(config_map(inputs)?),
        SharedObject::HeadlessService(headless(inputs)),
        SharedObject::ClientService(client(inputs)),
        budget(inputs),
    ])
}

/// Checks the certificates. A pod with missing certificates would wait for them without an error message.
fn certificates(inputs: &Inputs<'_>) -> Result<(), Problem> {
    let Some(name) = config::tls_secret(inputs.cluster) else {
        return Ok(());
    };
    let purpose = "spec.networking.tls asks for TLS; it needs ca.crt, tls.crt and tls.key";
    let secret = inputs.secrets.get(name).ok_or_else(|| Problem::MissingSecret {
        name: name.to_owned(),
        purpose: purpose.to_owned(),
    })?;
    let keys = ["ca.crt", "tls.crt", "tls.key"];
    keys.iter()
        .try_for_each(|key| acl::value(secret, name, key, purpose).map(drop))
}

/// The Secret with the passwords of the operator's own users. It is created before every other object.
pub fn system_secret(cluster: &ValkeyCluster, passwords: &SystemPasswords) -> Secret {
    let name = names::system_secret(&cluster.name_any());
    Secret {
        metadata: labels::meta(cluster, name, labels::of_cluster(cluster)),
        type_: Some("Opaque".to_owned()),
        data: Some(passwords.data()),
        ..Secret::default()
    }
}

fn acl_secret(inputs: &Inputs<'_>) -> Result<Secret, Problem> {
    let name = names::acl_secret(&inputs.cluster.name_any());
    let replication = format!(
        "masteruser {REPLICATION}\nmasterauth {}\n",
        inputs.passwords.replication
    );
    let data = [
        (USERS_KEY, acl::file(&acl::users(inputs)?)),
        (REPLICATION_FILE, replication),
        (EXPORTER_PASSWORD, format!("{}\n", inputs.passwords.exporter)),
    ];
    Ok(Secret {
        metadata: labels::meta(inputs.cluster, name, labels::of_cluster(inputs.cluster)),
        type_: Some("Opaque".to_owned()),
        data: Some(
            data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())))
                .into(),
        ),
        ..Secret::default()
    })
}

/// The exporter and replication passwords that pods use, if the Secret still has them.
pub fn passwords_of_pods(secret: &Secret) -> (Option<String>, Option<String>) {
    let file = |key: &str| {
        let data = secret.data.as_ref()?.get(key)?;
        Some(String::from_utf8_lossy(&data.0).into_owned())
    };
    let exporter = file(EXPORTER_PASSWORD).map(|text| text.trim().to_owned());
    let replication = file(REPLICATION_FILE).and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("masterauth "));
        line.map(|password| password.trim().to_owned())
    });
    let some = |password: &String| !password.is_empty();
    (exporter.filter(some), replication.filter(some))
}

/// Retains the previous rules of the spec's users, and sets the desired rules of the operator's own users.
pub fn keep_users(desired: &mut Secret, live: Option<&Secret>) {
    let text = |secret: &Secret| {
        let file = secret.data.as_ref().and_then(|data| data.get(USERS_KEY));
        file.map(|file| String::from_utf8_lossy(&file.0).into_owned())
            .unwrap_or_default()
    };
    let kept = acl::file_with_others_of(&text(desired), &live.map(text).unwrap_or_default());
    let data = desired.data.get_or_insert_default();
    data.insert(USERS_KEY.to_owned(), ByteString(kept.into_bytes()));
}

fn config_map(inputs: &Inputs<'_>) -> Result<ConfigMap, Problem> {
    let name = names::shared(&inputs.cluster.name_any());
    let mut metadata = labels::meta(inputs.cluster, name, labels::of_cluster(inputs.cluster));
    let remembered = Remembered::after(inputs);
    metadata
        .annotations
        .get_or_insert_default()
        .extend(remembered.annotation());
    let mut data: BTreeMap<String, String> = SCRIPTS.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
    data.insert(CONFIG_KEY.to_owned(), config::file(inputs.cluster)?);
    Ok(ConfigMap {
        metadata,
        data: Some(data),
        ..ConfigMap::default()
    })
}

fn headless(inputs: &Inputs<'_>) -> Service {
    let mut service = service(inputs, names::shared(&inputs.cluster.name_any()));
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = Some("None".to_owned());
        // Members must discover each other before any of them is ready.
        spec.publish_not_ready_addresses = Some(true);
    }
    service
}

fn client(inputs: &Inputs<'_>) -> Service {
    service(inputs, names::client_service(&inputs.cluster.name_any()))
}

fn service(inputs: &Inputs<'_>, name: String) -> Service {
    Service {
        metadata: labels::meta(inputs.cluster, name, labels::of_cluster(inputs.cluster)),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(labels::cluster_selector(inputs.cluster)),
            ports: Some(vec![ServicePort {
                name: Some("valkey".to_owned()),
                port: i32::from(PORT),
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String("valkey".to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn budget(inputs: &Inputs<'_>) -> SharedObject {
    let cluster = inputs.cluster;
    let name = names::shared(&cluster.name_any());
    let mode = cluster
        .spec
        .pod_disruption_budget
        .as_ref()
        .and_then(|budget| budget.mode);
    if mode.unwrap_or_default() == BudgetMode::Disabled {
        return SharedObject::NoPodDisruptionBudget(name);
    }
    SharedObject::PodDisruptionBudget(PodDisruptionBudget {
        metadata: labels::meta(cluster, name, labels::of_cluster(cluster)),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(labels::matching(labels::cluster_selector(cluster))),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
