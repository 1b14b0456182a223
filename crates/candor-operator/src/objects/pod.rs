//! A member's pod.

use candor_api::valkey::RESTARTED_AT;
use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, LocalObjectReference, PersistentVolumeClaimVolumeSource,
    PodSpec, PodTemplateSpec, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::json;

use super::labels::{self, TEMPLATE_HASH};
use super::{Inputs, Problem, config, containers, hash, names, preserved_fields, probes, scheduling, security, shared};

/// Default termination grace period. A server needs it for a planned failover and its shutdown.
const GRACE_SECONDS: i64 = 30;

/// The operator version that a pod template comes from. A pod that an earlier version created retains its template
/// until it is restarted for another reason (`kept.rs`): an operator upgrade restarts no members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TemplateVersion {
    /// The template of this version.
    #[default]
    Current,
    /// The template of version 0.1.0: probes are commands in the container every 2 s, and the exporter's password is
    /// an environment variable.
    Release0_1_0,
}

/// The pod template, annotated with its hash.
pub(super) fn template(
    inputs: &Inputs<'_>,
    member: MemberRef,
    version: TemplateVersion,
) -> Result<PodTemplateSpec, Problem> {
    let cluster = inputs.cluster;
    let mut annotations = labels::annotations(cluster);
    // A restart request of a user is part of the template. It starts a rolling update like any other template change.
    if let Some(at) = cluster.annotations().get(RESTARTED_AT) {
        annotations.insert(RESTARTED_AT.to_owned(), at.clone());
    }
    let mut template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels::of_member(cluster, member)),
            annotations: (!annotations.is_empty()).then(|| annotations.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(spec(inputs, member, version)?),
    };
    let unseen = |error: serde_json::Error| Problem::shape("spec", error.to_string());
    // A change to anything in the template restarts the pod. Of the configuration, only the keys that need a restart
    // are part of it.
    let made_from = json!({
        "template": serde_json::to_value(&template).map_err(unseen)?,
        "config": config::at_start(cluster)?,
        "reverted": inputs.remembered.lost(inputs.cluster),
    });
    annotations.insert(TEMPLATE_HASH.to_owned(), hash::fingerprint(&made_from));
    if let Some(metadata) = &mut template.metadata {
        metadata.annotations = Some(annotations);
    }
    Ok(template)
}

fn spec(inputs: &Inputs<'_>, member: MemberRef, version: TemplateVersion) -> Result<PodSpec, Problem> {
    let cluster = inputs.cluster;
    let pull: Vec<LocalObjectReference> = cluster
        .spec
        .image_pull_secrets
        .iter()
        .enumerate()
        .map(|(index, value)| preserved_fields::read(&format!("spec.imagePullSecrets[{index}]"), value))
        .collect::<Result<_, _>>()?;
    let mut pod = PodSpec {
        containers: containers::all(inputs, version)?,
        volumes: Some(volumes(inputs, member, version)),
        image_pull_secrets: (!pull.is_empty()).then_some(pull),
        security_context: Some(security::of_pod(cluster.spec.pod_security_context.as_ref())?),
        termination_grace_period_seconds: Some(cluster.spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS)),
        // A server needs neither access to the API server nor the names of other Services.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    };
    scheduling::apply(&mut pod, cluster, member)?;
    Ok(pod)
}

fn volumes(inputs: &Inputs<'_>, member: MemberRef, version: TemplateVersion) -> Vec<Volume> {
    let cluster = inputs.cluster;
    let name = cluster.name_any();
    let mut data = named("data");
    if config::persistent(cluster) {
        data.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
            claim_name: names::claim(&name, member),
            read_only: None,
        });
    } else {
        data.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    let mut users = named("users-acl");
    users.secret = Some(SecretVolumeSource {
        secret_name: Some(names::acl_secret(&name)),
        default_mode: Some(0o440),
        ..SecretVolumeSource::default()
    });
    let mut all = vec![
        data,
        of_config_map("valkey-conf", &name, &[shared::CONFIG_KEY]),
        users,
        of_config_map("scripts", &name, &shared::SCRIPTS.map(|(key, _)| key)),
    ];
    if let Some(secret) = config::tls_secret(cluster) {
        let mut certificates = named("tls-certs");
        certificates.secret = Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        });
        all.push(certificates);
    }
    if version == TemplateVersion::Current && probes::exporter_answers(inputs) {
        let mut password = named("exporter-password");
        password.secret = Some(SecretVolumeSource {
            secret_name: Some(names::acl_secret(&name)),
            items: Some(vec![item(shared::EXPORTER_PASSWORD)]),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        });
        all.push(password);
    }
    all
}

fn named(name: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        ..Volume::default()
    }
}

fn item(key: &str) -> KeyToPath {
    KeyToPath {
        key: key.to_owned(),
        path: key.to_owned(),
        mode: None,
    }
}

fn of_config_map(volume: &str, cluster: &str, keys: &[&str]) -> Volume {
    Volume {
        config_map: Some(ConfigMapVolumeSource {
            name: names::shared(cluster),
            items: Some(keys.iter().map(|key| item(key)).collect()),
            ..ConfigMapVolumeSource::default()
        }),
        ..named(volume)
    }
}
