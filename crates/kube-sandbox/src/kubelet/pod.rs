//! What is known of one running pod, shared by those who work on it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use k8s_openapi::api::core::v1::{Container, ContainerState, Pod};
use kube::{Client, ResourceExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::config::KubeletConfig;
use super::events::Recorder;
use super::faults::FaultBoard;
use super::fields::Addresses;
use super::launch::{Invocation, Launcher};
use super::logs::Log;
use super::network::Firewall;
use super::process::Handle;
use super::volumes::Volumes;
use super::{address::Subnet, faults::PodFault};

/// What every part of the kubelet works with.
pub(super) struct Context {
    pub client: Client,
    pub config: KubeletConfig,
    pub subnet: Subnet,
    pub launcher: Launcher,
    pub recorder: Recorder,
    /// Where all pods have their folders.
    pub folder: PathBuf,
    pub faults: FaultBoard,
    pub firewall: Firewall,
    /// Ends every task.
    pub stopped: CancellationToken,
}

impl Context {
    /// The address of the `index`-th node.
    pub fn host_address(&self, index: usize) -> Ipv4Addr {
        self.subnet.own(u8::try_from(index + 1).unwrap_or(u8::MAX))
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("config", &self.config)
            .field("subnet", &self.subnet)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Launched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}

/// Which part a container plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the next.
    Init,
    /// An init container with `restartPolicy: Always`: stays beside the others.
    Sidecar,
    /// One of `spec.containers`.
    Main,
}

impl Role {
    pub fn of_init(container: &Container) -> Self {
        if container.restart_policy.as_deref() == Some("Always") {
            Self::Sidecar
        } else {
            Self::Init
        }
    }

    /// The container's place in the spec, as events name it.
    pub fn path(self, name: &str) -> String {
        match self {
            Self::Main => format!("spec.containers{{{name}}}"),
            Self::Init | Self::Sidecar => format!("spec.initContainers{{{name}}}"),
        }
    }
}

/// A running process, for exec and faults.
#[derive(Clone)]
pub(super) struct Launched {
    pub handle: Arc<Handle>,
    pub invocation: Arc<Invocation>,
}

/// What is known of one container.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub role: Role,
    /// `None`: not begun yet.
    pub state: Option<ContainerState>,
    pub last: Option<ContainerState>,
    pub restarts: i32,
    pub ready: bool,
    pub started: bool,
    pub container_id: Option<String>,
    pub image: String,
    pub image_id: String,
    /// It will not be started again.
    pub done: bool,
    pub launched: Option<Launched>,
    pub log: Option<Arc<Log>>,
    pub previous_log: Option<Arc<Log>>,
}

impl View {
    pub fn new(role: Role, container: &Container) -> Self {
        Self {
            role,
            state: None,
            last: None,
            restarts: 0,
            ready: false,
            started: false,
            container_id: None,
            image: container.image.clone().unwrap_or_default(),
            image_id: String::new(),
            done: false,
            launched: None,
            log: None,
            previous_log: None,
        }
    }

    /// The code it ended with, when it has ended.
    pub fn exit_code(&self) -> Option<i32> {
        let terminated = self.state.as_ref().and_then(|state| state.terminated.as_ref());
        terminated.map(|end| end.exit_code)
    }
}

/// One pod of this kubelet.
#[derive(Debug)]
pub(super) struct PodShared {
    pub uid: String,
    pub name: String,
    pub namespace: String,
    pub ip: Ipv4Addr,
    pub addresses: Addresses,
    pub folder: PathBuf,
    pub volumes: RwLock<Volumes>,
    /// A view has changed.
    pub changed: Notify,
    /// A `ConfigMap` or `Secret` of the namespace has changed: what failed for lack of one may work now.
    pub objects: Notify,
    latest: RwLock<Arc<Pod>>,
    views: Mutex<BTreeMap<String, View>>,
}

impl PodShared {
    pub fn new(pod: Arc<Pod>, ip: Ipv4Addr, host: Ipv4Addr, folder: PathBuf) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let init = spec.init_containers.iter().flatten();
        let init = init.map(|c| (c.name.clone(), View::new(Role::of_init(c), c)));
        let main = spec
            .containers
            .iter()
            .map(|c| (c.name.clone(), View::new(Role::Main, c)));
        Self {
            uid: pod.uid().unwrap_or_default(),
            name: pod.name_any(),
            namespace: pod.namespace().unwrap_or_default(),
            ip,
            addresses: Addresses {
                pod: ip.to_string(),
                host: host.to_string(),
            },
            folder,
            volumes: RwLock::default(),
            changed: Notify::new(),
            objects: Notify::new(),
            views: Mutex::new(init.chain(main).collect()),
            latest: RwLock::new(pod),
        }
    }

    /// The object as last seen.
    pub fn pod(&self) -> Arc<Pod> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn saw(&self, pod: Arc<Pod>) {
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = pod;
    }

    pub fn views(&self) -> MutexGuard<'_, BTreeMap<String, View>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn view(&self, name: &str) -> Option<View> {
        self.views().get(name).cloned()
    }

    /// Changes what is known of a container and wakes the pod's worker.
    pub fn update(&self, name: &str, change: impl FnOnce(&mut View)) {
        if let Some(view) = self.views().get_mut(name) {
            change(view);
        }
        self.changed.notify_one();
    }

    /// `name_namespace(uid)`, as the kubelet's messages name a pod.
    pub fn label(&self) -> String {
        format!("{}_{}({})", self.name, self.namespace, self.uid)
    }

    /// The fault that a test has set for this pod.
    pub fn fault(&self, context: &Context) -> PodFault {
        context.faults.of(&self.namespace, &self.name)
    }
}
