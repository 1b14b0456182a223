//! The containers of a member's pod.

use candor_api::valkey::spec::{Exporter, Resources};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, ObjectFieldSelector, ResourceRequirements, SecretKeySelector,
    SecurityContext, VolumeMount,
};
use kube::ResourceExt;
use serde_json::Value;

use super::config::{self, CONFIG_FOLDER, DATA_FOLDER, TLS_FOLDER, USERS_FOLDER};
use super::pod::TemplateVersion;
use super::system_users::EXPORTER;
use super::{EXPORTER_PORT, Inputs, PORT, Problem, merge, names, preserved_fields, probes, security, shared};

/// Name of the server container.
pub const SERVER: &str = "server";
/// Name of the metrics exporter container.
pub const METRICS: &str = "metrics-exporter";

const SCRIPTS_FOLDER: &str = "/scripts";
/// Path of the file with the exporter's password.
const EXPORTER_FOLDER: &str = "/config/exporter";

/// All containers: the operator's containers with the overrides of the spec, and the additional containers of the
/// spec.
pub(super) fn all(inputs: &Inputs<'_>, version: TemplateVersion) -> Result<Vec<Container>, Problem> {
    let exporter = inputs.cluster.spec.exporter.clone().unwrap_or_default();
    let mut containers = vec![server(inputs, version)];
    if exporter.enabled.unwrap_or(true) {
        containers.push(metrics(inputs, version, &exporter)?);
    }
    for (index, partial) in inputs.cluster.spec.containers.iter().enumerate() {
        let field = format!("spec.containers[{index}]");
        let known = partial.get("name").and_then(Value::as_str);
        match containers
            .iter_mut()
            .find(|container| Some(container.name.as_str()) == known)
        {
            Some(container) => *container = laid_over(container, &field, partial)?,
            // The override of the metrics container has no effect until metrics are enabled again.
            None if known == Some(METRICS) => {}
            None => containers.push(sidecar(&field, partial)?),
        }
    }
    Ok(containers)
}

fn laid_over(container: &Container, field: &str, partial: &Value) -> Result<Container, Problem> {
    let mut whole = serde_json::to_value(container).map_err(|error| Problem::shape(field, error.to_string()))?;
    merge::merge(&mut whole, partial);
    preserved_fields::read(field, &whole)
}

fn sidecar(field: &str, written: &Value) -> Result<Container, Problem> {
    let mut container: Container = preserved_fields::read(field, written)?;
    if container.image.as_ref().is_none_or(String::is_empty) {
        let known = format!("a sidecar needs an image; the operator's own containers are {SERVER} and {METRICS}");
        return Err(Problem::shape(format!("{field}.image"), known));
    }
    security::complete(&mut container);
    Ok(container)
}

fn server(inputs: &Inputs<'_>, version: TemplateVersion) -> Container {
    let cluster = inputs.cluster;
    let timeout = candor_engine::kinds::valkey::node_timeout(cluster);
    // A member that must not return as primary does not listen for two node timeouts (start.sh).
    let silent = i32::try_from(timeout / 500).unwrap_or(i32::MAX / 2);
    let mut server = Container {
        name: SERVER.to_owned(),
        image: Some(inputs.image.to_owned()),
        command: Some(message(&["sh", "/scripts/start.sh", "/config/valkey.conf"])),
        env: Some(vec![
            pod_ip(),
            plain("VALKEY_DATA", if config::persistent(cluster) { "kept" } else { "lost" }),
        ]),
        ports: Some(vec![port("valkey", PORT), port("bus", PORT + 10_000)]),
        resources: cluster.spec.resources.as_ref().map(requirements),
        volume_mounts: Some(mounts(inputs)),
        security_context: Some(security::of_container()),
        // If the server fails to start, the last lines of its log become part of the pod's status.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    };
    probes::apply(&mut server, inputs, version, silent);
    server
}

/// The environment variables are those of common Redis exporters, so that another exporter image works without
/// changes.
fn metrics(inputs: &Inputs<'_>, version: TemplateVersion, exporter: &Exporter) -> Result<Container, Problem> {
    let cluster = inputs.cluster;
    let tls = config::tls_secret(cluster).is_some();
    let scheme = if tls { "rediss" } else { "redis" };
    // An environment variable is fixed when the container starts. Readiness must keep working after the password is
    // replaced.
    let file = version == TemplateVersion::Current && probes::exporter_answers(inputs);
    let password = if file {
        plain(
            "CANDOR_PASSWORD_FILE",
            &format!("{EXPORTER_FOLDER}/{}", shared::EXPORTER_PASSWORD),
        )
    } else {
        from_secret("REDIS_PASSWORD", names::system_secret(&cluster.name_any()), EXPORTER)
    };
    let mut env = vec![
        pod_ip(),
        plain("REDIS_ADDR", &format!("{scheme}://$(POD_IP):{PORT}")),
        plain("REDIS_USER", EXPORTER),
        password,
        plain(
            "REDIS_EXPORTER_WEB_LISTEN_ADDRESS",
            &format!("$(POD_IP):{EXPORTER_PORT}"),
        ),
    ];
    if tls {
        let files = [
            ("REDIS_EXPORTER_TLS_CA_CERT_FILE", "ca.crt"),
            ("REDIS_EXPORTER_TLS_CLIENT_CERT_FILE", "tls.crt"),
            ("REDIS_EXPORTER_TLS_CLIENT_KEY_FILE", "tls.key"),
        ];
        env.extend(files.map(|(name, file)| plain(name, &format!("{TLS_FOLDER}/{file}"))));
        // Certificates contain the names of Services, but the exporter connects to the pod's IP address.
        env.push(plain("REDIS_EXPORTER_SKIP_TLS_VERIFICATION", "true"));
    }
    let certificates = tls.then(|| mount("tls-certs", TLS_FOLDER, true));
    let password = file.then(|| mount("exporter-password", EXPORTER_FOLDER, true));
    let mounts: Vec<VolumeMount> = certificates.into_iter().chain(password).collect();
    // The operator's image contains the whole program. The exporter is one of its subcommands.
    let own = exporter.image.is_none().then(|| "exporter".to_owned());
    let args: Vec<String> = own.into_iter().chain(exporter.args.iter().cloned()).collect();
    let security_context: SecurityContext = match &exporter.security_context {
        Some(written) => {
            const FIELD: &str = "spec.exporter.securityContext";
            let mut whole = serde_json::to_value(security::of_container())
                .map_err(|error| Problem::shape(FIELD, error.to_string()))?;
            merge::merge(&mut whole, written);
            preserved_fields::read(FIELD, &whole)?
        }
        None => security::of_container(),
    };
    Ok(Container {
        name: METRICS.to_owned(),
        image: Some(
            exporter
                .image
                .clone()
                .unwrap_or_else(|| inputs.exporter_image.to_owned()),
        ),
        args: (!args.is_empty()).then_some(args),
        env: Some(env),
        ports: Some(vec![port("metrics", EXPORTER_PORT)]),
        resources: exporter.resources.as_ref().map(requirements),
        volume_mounts: (!mounts.is_empty()).then_some(mounts),
        security_context: Some(security_context),
        ..Container::default()
    })
}

fn mounts(inputs: &Inputs<'_>) -> Vec<VolumeMount> {
    let mut mounts = vec![
        mount("data", DATA_FOLDER, false),
        mount("valkey-conf", CONFIG_FOLDER, true),
        mount("users-acl", USERS_FOLDER, true),
        mount("scripts", SCRIPTS_FOLDER, true),
    ];
    if config::tls_secret(inputs.cluster).is_some() {
        mounts.push(mount("tls-certs", TLS_FOLDER, true));
    }
    mounts
}

fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn requirements(resources: &Resources) -> ResourceRequirements {
    ResourceRequirements {
        requests: (!resources.requests.is_empty()).then(|| resources.requests.clone()),
        limits: (!resources.limits.is_empty()).then(|| resources.limits.clone()),
        ..ResourceRequirements::default()
    }
}

fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    }
}

fn pod_ip() -> EnvVar {
    EnvVar {
        name: "POD_IP".to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".to_owned()),
                field_path: "status.podIP".to_owned(),
            }),
            ..EnvVarSource::default()
        }),
    }
}

fn from_secret(name: &str, secret: String, key: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret,
                key: key.to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
    }
}

fn message(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
