//! A pod's volumes as folders of the host.

mod atomic;
mod payload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    Container, HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, Volume, VolumeMount,
};
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use super::env::expand;
use super::fields::Addresses;
use super::rootfs::RootFs;
use payload::Payload;

/// Why a volume is not there yet. The message follows `MountVolume.SetUp failed for volume "x" : `.
#[derive(Debug, thiserror::Error)]
pub(super) enum VolumeError {
    #[error("{kind} \"{name}\" not found")]
    NoObject { kind: &'static str, name: String },
    #[error("references non-existent {kind} key: {key}")]
    NoKey { kind: &'static str, key: String },
    #[error("invalid path \"{0}\": it may not be absolute or contain '..'")]
    Path(String),
    #[error("hostPath type check failed: {path} is not {expected}")]
    HostPath { path: String, expected: &'static str },
    #[error("PersistentVolumeClaim \"{0}\" is not bound")]
    Unbound(String),
    #[error(
        "the sandbox has no volumes of this kind: only configMap, secret, projected, downwardAPI, emptyDir, hostPath and persistentVolumeClaim"
    )]
    Kind,
    #[error(transparent)]
    Field(#[from] super::fields::FieldError),
    #[error("{}", super::env::message(.0))]
    Api(#[from] kube::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// An object that a volume shows: its kind (`configmap`, `secret`), and its name.
pub(super) type Shown = (&'static str, String);

/// What preparing a pod's volumes needs.
pub(super) struct Preparation<'a> {
    pub client: &'a Client,
    pub pod: &'a Pod,
    pub addresses: &'a Addresses,
    /// The pod's own folder.
    pub folder: &'a Path,
    /// The group that owns the volumes, where the kubelet may give files away.
    pub fs_group: Option<i64>,
}

/// The prepared volumes of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    places: BTreeMap<String, Place>,
    shown: BTreeSet<Shown>,
    /// When a token among them should be asked for again.
    pub renew_at: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    read_only: bool,
}

impl Volumes {
    /// Whether one of the volumes shows this object.
    pub fn shows(&self, object: &Shown) -> bool {
        self.shown.contains(object)
    }

    /// Puts the volumes a container mounts into its root, parents first; `small` ones are of memory instead.
    pub fn mount(
        &self,
        container: &Container,
        env: &[(String, String)],
        small: &HashMap<String, u64>,
        root: &mut RootFs,
    ) -> Result<(), VolumeError> {
        let mut mounts: Vec<&VolumeMount> = container.volume_mounts.iter().flatten().collect();
        mounts.sort_by_key(|mount| Path::new(&mount.mount_path).components().count());
        for mount in mounts {
            if let Some(bytes) = small.get(&mount.name) {
                root.memory(Path::new(&mount.mount_path), *bytes)?;
                continue;
            }
            let place = self.places.get(&mount.name).ok_or_else(|| VolumeError::NoObject {
                kind: "volume",
                name: mount.name.clone(),
            })?;
            let source = source_of(place, mount, env)?;
            let read_only = place.read_only || mount.read_only == Some(true);
            root.mount(&source, Path::new(&mount.mount_path), read_only)?;
        }
        Ok(())
    }
}

/// The volume's folder, or a part of it. A part that does not exist is made, as a folder.
fn source_of(place: &Place, mount: &VolumeMount, env: &[(String, String)]) -> Result<PathBuf, VolumeError> {
    let lookup = |name: &str| {
        env.iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let part = match (&mount.sub_path, &mount.sub_path_expr) {
        (Some(part), _) if !part.is_empty() => part.clone(),
        (_, Some(expression)) if !expression.is_empty() => expand(expression, lookup),
        _ => return Ok(place.path.clone()),
    };
    let path = below(&place.path, &part)?;
    if std::fs::metadata(&path).is_err() {
        std::fs::create_dir_all(&path)?;
        open_to_all(&path)?;
    }
    // The file itself and not the link that is exchanged on a change: a mounted part never follows its object.
    Ok(path.canonicalize()?)
}

/// `part` below `folder`, and nowhere else.
fn below(folder: &Path, part: &str) -> Result<PathBuf, VolumeError> {
    use std::path::Component;
    let inside = Path::new(part)
        .components()
        .all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if inside {
        Ok(folder.join(part))
    } else {
        Err(VolumeError::Path(part.to_owned()))
    }
}

fn open_to_all(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777))
}

impl Preparation<'_> {
    /// Makes or renews every volume. The first that fails is named, with the reason.
    pub async fn all(&self) -> Result<Volumes, (String, VolumeError)> {
        let mut made = Volumes::default();
        for volume in self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let place = self.one(volume, &mut made).await;
            made.places.insert(
                volume.name.clone(),
                place.map_err(|error| (volume.name.clone(), error))?,
            );
        }
        Ok(made)
    }

    async fn one(&self, volume: &Volume, made: &mut Volumes) -> Result<Place, VolumeError> {
        let path = self.folder.join("volumes").join(&volume.name);
        if let Some(payload) = Payload::of(self, volume).await? {
            made.shown.extend(payload.shown.iter().cloned());
            let renew_at = payload.renew_after.map(|wait| Instant::now() + wait);
            made.renew_at = [made.renew_at, renew_at].into_iter().flatten().min();
            std::fs::create_dir_all(&path)?;
            open_to_all(&path)?;
            let group = self.fs_group;
            let target = path.clone();
            let write = move || atomic::write(&target, &payload.files, group);
            tokio::task::spawn_blocking(write).await.map_err(io::Error::other)??;
            return Ok(Place { path, read_only: true });
        }
        if volume.empty_dir.is_some() {
            if !path.exists() {
                std::fs::create_dir_all(&path)?;
                open_to_all(&path)?;
            }
            self.chown_to_group(&path);
            return Ok(Place { path, read_only: false });
        }
        if let Some(host) = &volume.host_path {
            return Ok(Place {
                path: host_path(host)?,
                read_only: false,
            });
        }
        let claim = volume
            .persistent_volume_claim
            .as_ref()
            .map(|of| (of.claim_name.clone(), of.read_only));
        let ephemeral = || {
            volume
                .ephemeral
                .as_ref()
                .map(|_| (format!("{}-{}", self.pod.name_any(), volume.name), None))
        };
        let (claim, read_only) = claim.or_else(ephemeral).ok_or(VolumeError::Kind)?;
        let path = self.claimed(&claim).await?;
        self.chown_to_group(&path);
        Ok(Place {
            path,
            read_only: read_only == Some(true),
        })
    }

    /// The folder of the volume that a claim is bound to.
    async fn claimed(&self, name: &str) -> Result<PathBuf, VolumeError> {
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &self.pod.namespace().unwrap_or_default());
        let missing = |kind, name: &str| VolumeError::NoObject {
            kind,
            name: name.to_owned(),
        };
        let claim = claims
            .get_opt(name)
            .await?
            .ok_or_else(|| missing("persistentvolumeclaim", name))?;
        let volume = claim
            .spec
            .and_then(|spec| spec.volume_name)
            .filter(|name| !name.is_empty());
        let volume = volume.ok_or_else(|| VolumeError::Unbound(name.to_owned()))?;
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let found = volumes
            .get_opt(&volume)
            .await?
            .ok_or_else(|| missing("persistentvolume", &volume))?;
        let spec = found.spec.unwrap_or_default();
        let path = spec.host_path.map(|of| of.path).or(spec.local.map(|of| of.path));
        let path = PathBuf::from(path.ok_or(VolumeError::Kind)?);
        if !path.exists() {
            std::fs::create_dir_all(&path)?;
            open_to_all(&path)?;
        }
        Ok(path)
    }

    /// `fsGroup`: the folder belongs to the group and what is made in it inherits that.
    fn chown_to_group(&self, path: &Path) {
        let Some(group) = self.fs_group.and_then(|group| u32::try_from(group).ok()) else {
            return;
        };
        let given = std::os::unix::fs::chown(path, None, Some(group));
        let given = given.and_then(|()| std::fs::set_permissions(path, PermissionsExt::from_mode(0o2777)));
        if let Err(error) = given {
            tracing::debug!(path = %path.display(), %error, "a volume could not be given to its fsGroup");
        }
    }
}

fn host_path(of: &HostPathVolumeSource) -> Result<PathBuf, VolumeError> {
    let path = PathBuf::from(&of.path);
    let check = |met: bool, expected| {
        let failed = || VolumeError::HostPath {
            path: of.path.clone(),
            expected,
        };
        if met { Ok(()) } else { Err(failed()) }
    };
    match of.type_.as_deref().unwrap_or_default() {
        "DirectoryOrCreate" => std::fs::create_dir_all(&path)?,
        "FileOrCreate" => drop(std::fs::OpenOptions::new().create(true).append(true).open(&path)?),
        "Directory" => check(path.is_dir(), "a directory")?,
        "File" => check(path.is_file(), "a file")?,
        _ => check(path.exists(), "there")?,
    }
    Ok(path)
}
