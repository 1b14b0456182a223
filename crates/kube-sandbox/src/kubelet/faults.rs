//! What a test can make go wrong below the API: pods and nodes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use super::Kubelet;
use super::pod::PodShared;

/// Why a fault could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// This kubelet has no such pod.
    #[error("no pod {namespace}/{name} runs in this sandbox")]
    NoPod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// No process of the pod or container runs.
    #[error("nothing of pod {namespace}/{name} runs now")]
    NotRunning {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Packets can only be dropped by root.
    #[error("{what} needs root: run the sandbox as root, or use kill and freeze instead")]
    NeedsRoot {
        /// What was asked for.
        what: &'static str,
    },
    /// The rule could not be set.
    #[error("`{command}` failed: {message}")]
    Rule {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// The API server rejected the request.
    #[error("the node's object could not be changed: {0}")]
    Api(#[from] kube::Error),
}

/// What is wrong with pods of one name, from their next start on.
#[derive(Clone, Debug, Default)]
pub(super) struct PodFault {
    pub never_start: bool,
    pub start_delay: Duration,
    /// Volumes that are small and of memory, by name, with their bytes.
    pub small_volumes: HashMap<String, u64>,
}

/// The faults that wait for a start.
#[derive(Debug, Default)]
pub(super) struct FaultBoard {
    pods: Mutex<HashMap<(String, String), PodFault>>,
    /// Nodes that are lost.
    lost: Mutex<HashSet<String>>,
}

impl FaultBoard {
    pub fn of(&self, namespace: &str, name: &str) -> PodFault {
        let pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        pods.get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
            .unwrap_or_default()
    }

    fn change(&self, namespace: &str, name: &str, change: impl FnOnce(&mut PodFault)) {
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        change(pods.entry((namespace.to_owned(), name.to_owned())).or_default());
    }

    /// A node is lost, or back.
    pub fn lose(&self, node: &str, lost: bool) {
        let mut nodes = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost {
            nodes.insert(node.to_owned());
        } else {
            nodes.remove(node);
        }
    }

    pub fn is_lost(&self, node: &str) -> bool {
        let nodes = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.contains(node)
    }
}

impl Kubelet {
    /// SIGKILL to one container, or to all of the pod; they end as crashed and are restarted as their policy says.
    pub fn kill(&self, namespace: &str, pod: &str, container: Option<&str>) -> Result<(), FaultError> {
        self.signal(namespace, pod, container, |handle| handle.signal(Signal::KILL))
    }

    /// SIGSTOP to every process of the pod: it keeps its connections and answers nothing.
    pub fn freeze(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        self.signal(namespace, pod, None, |handle| handle.signal_all(Signal::STOP))
    }

    /// SIGCONT to every process of the pod.
    pub fn thaw(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        self.signal(namespace, pod, None, |handle| handle.signal_all(Signal::CONT))
    }

    fn signal(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        send: impl Fn(&super::process::Handle),
    ) -> Result<(), FaultError> {
        let shared = self.fault_target(namespace, pod)?;
        let views = shared.views();
        let chosen = views
            .iter()
            .filter(|(name, _)| container.is_none_or(|expected| expected == *name));
        let running: Vec<_> = chosen.filter_map(|(_, view)| view.launched.clone()).collect();
        drop(views);
        if running.is_empty() {
            return Err(FaultError::NotRunning {
                namespace: namespace.to_owned(),
                name: pod.to_owned(),
            });
        }
        for launched in &running {
            send(&launched.handle);
        }
        Ok(())
    }

    pub(super) fn fault_target(&self, namespace: &str, pod: &str) -> Result<std::sync::Arc<PodShared>, FaultError> {
        self.pods.find(namespace, pod).ok_or_else(|| FaultError::NoPod {
            namespace: namespace.to_owned(),
            name: pod.to_owned(),
        })
    }

    /// From now on pods of this name stay in `ContainerCreating`; `false` lets the next start pass again.
    pub fn never_start(&self, namespace: &str, pod: &str, never: bool) {
        self.context
            .faults
            .change(namespace, pod, |fault| fault.never_start = never);
    }

    /// A full disk: from the next start on, every container of this pod gets a volume of so many bytes of memory in
    /// the place of the named one. It begins empty at each start and is not shared between containers.
    pub fn shrink_volume(&self, namespace: &str, pod: &str, volume: &str, bytes: u64) {
        self.context.faults.change(namespace, pod, |fault| {
            fault.small_volumes.insert(volume.to_owned(), bytes);
        });
    }

    /// Every further start of a container of this pod waits so long first.
    pub fn start_slowly(&self, namespace: &str, pod: &str, wait: Duration) {
        self.context
            .faults
            .change(namespace, pod, |fault| fault.start_delay = wait);
    }
}
