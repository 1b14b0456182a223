//! Everything about a container that is decided before its process starts.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, PodSpec};
use sha2::{Digest, Sha256};

use super::env::{EnvError, Sources, command_line};
use super::images::{Image, from_environment, wrapper};
use super::launch::{Identity, Invocation, Place};
use super::pod::{Context, PodShared};
use super::rootfs::RootFs;
use super::volumes::VolumeError;

/// Why a container could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    /// Something it refers to is missing: `CreateContainerConfigError`.
    #[error("{0}")]
    Config(String),
    /// Its root could not be prepared: `CreateContainerError`.
    #[error("{0}")]
    Root(String),
}

impl From<EnvError> for CreateError {
    fn from(error: EnvError) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<VolumeError> for CreateError {
    fn from(error: VolumeError) -> Self {
        Self::Root(error.to_string())
    }
}

impl From<std::io::Error> for CreateError {
    fn from(error: std::io::Error) -> Self {
        Self::Root(error.to_string())
    }
}

/// A container ready to be started.
pub(super) struct Created {
    pub place: Place,
    pub invocation: Invocation,
    /// Holds the root; removed when the container has ended.
    pub folder: PathBuf,
    pub termination_message: PathBuf,
    pub id: String,
}

/// Prepares the `attempt`-th start of a container.
pub(super) async fn create(
    context: &Context,
    pod: &PodShared,
    container: &Container,
    image: &Image,
    attempt: i32,
) -> Result<Created, CreateError> {
    let object = pod.pod();
    let spec = object.spec.clone().unwrap_or_default();
    let identity = identity(pod, &spec, container, image)?;
    let sources = Sources {
        client: &context.client,
        pod: &object,
        addresses: &pod.addresses,
        given: given_env(context, pod, &spec, image, &identity),
    };
    let env = sources.environment(container).await?;
    let command = command_line(container, &image.entrypoint, &image.args, &env);
    if command.is_empty() {
        return Err(CreateError::Config("no command specified".to_owned()));
    }
    let working_dir = container
        .working_dir
        .clone()
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from);
    let working_dir = working_dir
        .or_else(|| image.working_dir.clone())
        .unwrap_or_else(|| "/".into());
    let folder = pod
        .folder
        .join("containers")
        .join(&container.name)
        .join(attempt.to_string());
    let message_path = container
        .termination_message_path
        .clone()
        .filter(|path| !path.is_empty());
    let message_path = message_path.unwrap_or_else(|| "/dev/termination-log".to_owned());
    let preparation = Root {
        folder: folder.clone(),
        hostname: hostname(pod, &spec),
        read_only: container
            .security_context
            .as_ref()
            .and_then(|of| of.read_only_root_filesystem)
            == Some(true),
        working_dir: working_dir.clone(),
        message_path: message_path.into(),
    };
    let (place, termination_message) = preparation.make(context, pod, container, image, &env)?;
    Ok(Created {
        place,
        invocation: Invocation {
            command,
            env,
            working_dir,
            identity,
        },
        folder,
        termination_message,
        id: container_id(pod, container, attempt),
    })
}

struct Root {
    folder: PathBuf,
    hostname: String,
    read_only: bool,
    working_dir: PathBuf,
    message_path: PathBuf,
}

impl Root {
    fn make(
        self,
        context: &Context,
        pod: &PodShared,
        container: &Container,
        image: &Image,
        env: &[(String, String)],
    ) -> Result<(Place, PathBuf), CreateError> {
        let mut root = RootFs::create(&self.folder, context.launcher.user_namespace())?;
        for bind in &image.binds {
            let source = from_environment(&bind.source, |name| std::env::var(name).ok());
            root.mount(Path::new(&source), &bind.target, true)
                .map_err(|error| CreateError::Root(format!("the image's folder {source}: {error}")))?;
        }
        for program in &image.programs {
            let path = Path::new("/usr/local/bin").join(&program.name);
            root.write(&path, &wrapper(program, &pod.addresses.pod))?;
        }
        for (path, text) in &image.files {
            root.write(path, text)?;
        }
        root.write(Path::new("/etc/hostname"), &format!("{}\n", self.hostname))?;
        root.mount(&pod.folder.join("hosts"), Path::new("/etc/hosts"), false)?;
        let volumes = pod
            .volumes
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        volumes.mount(container, env, &pod.fault(context).small_volumes, &mut root)?;
        root.folder(&self.working_dir)?;
        let message = self.folder.join("termination-message");
        std::fs::write(&message, "")?;
        open_for_all(&message)?;
        root.mount(&message, &self.message_path, false)?;
        let fstab = self.folder.join("fstab");
        std::fs::write(&fstab, root.fstab())?;
        let place = Place {
            root: root.root().to_owned(),
            fstab,
            hostname: self.hostname,
            read_only: self.read_only,
            mount_flags: root.mount_flags(root.root()),
        };
        Ok((place, message))
    }
}

fn open_for_all(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))
}

/// What every container finds in its environment, before its own.
fn given_env(
    context: &Context,
    pod: &PodShared,
    spec: &PodSpec,
    image: &Image,
    identity: &Identity,
) -> Vec<(String, String)> {
    let home = if identity.user.unwrap_or(0) == 0 { "/root" } else { "/" };
    let mut given = vec![
        ("HOSTNAME".to_owned(), hostname(pod, spec)),
        ("HOME".to_owned(), home.to_owned()),
    ];
    if let Some(address) = context.config.api_address {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let set = [
            ("KUBERNETES_SERVICE_HOST", host.clone()),
            ("KUBERNETES_SERVICE_PORT", port.clone()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", port.clone()),
            ("KUBERNETES_PORT", format!("tcp://{host}:{port}")),
        ];
        given.extend(set.map(|(name, value)| (name.to_owned(), value)));
    }
    given.extend(image.env.clone());
    given
}

/// The pod's host name: what the spec says, else the pod's name.
pub(super) fn hostname(pod: &PodShared, spec: &PodSpec) -> String {
    let given = spec.hostname.clone().filter(|name| !name.is_empty());
    let name = given.unwrap_or_else(|| pod.name.clone());
    name.chars().take(63).collect()
}

fn identity(pod: &PodShared, spec: &PodSpec, container: &Container, image: &Image) -> Result<Identity, CreateError> {
    let of_pod = spec.security_context.clone().unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let user = own.run_as_user.or(of_pod.run_as_user).or(image.user);
    let label = format!("(pod: \"{}\", container: {})", pod.label(), container.name);
    if own.run_as_non_root.or(of_pod.run_as_non_root) == Some(true) && user.unwrap_or(0) == 0 {
        let explicit = own.run_as_user.or(of_pod.run_as_user).is_some();
        let message = if explicit {
            "container's runAsUser breaks non-root policy"
        } else {
            "container has runAsNonRoot and image will run as root"
        };
        return Err(CreateError::Config(format!("{message} {label}")));
    }
    let capabilities = own.capabilities.unwrap_or_default();
    Ok(Identity {
        user,
        group: own.run_as_group.or(of_pod.run_as_group),
        groups: of_pod
            .supplemental_groups
            .into_iter()
            .flatten()
            .chain(of_pod.fs_group)
            .collect(),
        no_new_privileges: own.allow_privilege_escalation == Some(false),
        privileged: own.privileged == Some(true),
        dropped: capabilities.drop.unwrap_or_default(),
        added: capabilities.add.unwrap_or_default(),
    })
}

/// An id as unique and as long as a container engine's.
fn container_id(pod: &PodShared, container: &Container, attempt: i32) -> String {
    let hash = Sha256::digest(format!("{}/{}/{attempt}", pod.uid, container.name));
    format!("sandbox://{}", hex(&hash))
}

/// The id of an image: the name's own hash stands for the content's.
pub(super) fn image_id(full_name: &str) -> String {
    let repository = full_name.split('@').next().unwrap_or(full_name);
    let bare = match repository.rfind(':') {
        Some(colon) if !repository[colon..].contains('/') => &repository[..colon],
        _ => repository,
    };
    format!("{bare}@sha256:{}", hex(&Sha256::digest(full_name)))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The pod's `/etc/hosts`.
pub(super) fn hosts_file(pod: &PodShared, spec: &PodSpec) -> String {
    use std::fmt::Write;
    let name = hostname(pod, spec);
    let mut text =
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
            .to_owned();
    let domain = spec.subdomain.as_ref().filter(|subdomain| !subdomain.is_empty());
    let full = domain.map(|subdomain| format!("{name}.{subdomain}.{}.svc.cluster.local\t", pod.namespace));
    let _ = writeln!(text, "{}\t{}{name}", pod.ip, full.unwrap_or_default());
    let aliases = spec.host_aliases.as_deref().unwrap_or_default();
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        let _ = writeln!(
            text,
            "{}\t{}",
            alias.ip,
            alias.hostnames.clone().unwrap_or_default().join("\t")
        );
    }
    text
}
