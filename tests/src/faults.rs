//! Kill, freeze and thaw: through the sandbox's kubelet, or with signals on a real node.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube_sandbox::kubelet::{ContainerRef, ExecRequest, PodAccess};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;

use crate::World;

/// Sends SIGKILL to a pod's server, or to Robin.
pub async fn kill(world: &World, pod: &str) {
    signal(world, pod, Signal::KILL).await;
}

/// Sends SIGSTOP to everything in a pod.
pub async fn freeze(world: &World, pod: &str) {
    signal(world, pod, Signal::STOP).await;
}

/// Sends SIGCONT to everything in a pod.
pub async fn thaw(world: &World, pod: &str) {
    signal(world, pod, Signal::CONT).await;
}

/// Runs a shell command in a pod's server container and returns its output and errors; sandbox only.
pub async fn run(world: &World, pod: &str, command: &str) -> String {
    let kubelet = world
        .sandbox()
        .and_then(|sandbox| sandbox.kubelet())
        .expect("a sandbox");
    let at = ContainerRef {
        namespace: world.namespace().to_owned(),
        pod: pod.to_owned(),
        container: Some("server".to_owned()),
    };
    let request = ExecRequest {
        command: ["sh", "-c", &format!("{{ {command}; }} 2>&1")]
            .map(str::to_owned)
            .to_vec(),
        stdin: false,
        tty: false,
    };
    let process = kubelet.exec(at, request).await;
    let mut process = process.unwrap_or_else(|error| panic!("{pod}: {error:?}"));
    let mut output = String::new();
    process
        .stdout
        .read_to_string(&mut output)
        .await
        .expect("it can be read");
    process.exit.await;
    output
}

async fn signal(world: &World, pod: &str, signal: Signal) {
    let namespace = world.namespace();
    let pods: Api<Pod> = Api::namespaced(world.client(), namespace);
    let found = pods.get(pod).await.unwrap_or_else(|error| panic!("{pod}: {error}"));
    let main = main_container(&found);
    if let Some(kubelet) = world.sandbox().and_then(|sandbox| sandbox.kubelet()) {
        let done = match signal {
            Signal::KILL => kubelet.kill(namespace, pod, Some(&main)),
            Signal::STOP => kubelet.freeze(namespace, pod),
            _ => kubelet.thaw(namespace, pod),
        };
        done.unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let uid = found.metadata.uid.expect("a pod has a uid");
    let processes = processes_of(&uid, (signal == Signal::KILL).then_some(main.as_str()));
    assert!(
        !processes.is_empty(),
        "no process of {pod} on this machine: run the suite on the node, as root"
    );
    for process in processes {
        kill_process(process, signal).unwrap_or_else(|error| panic!("{pod}: {error}"));
    }
}

/// The container that does a pod's work.
fn main_container(pod: &Pod) -> String {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let main = containers.find(|one| ["server", "redis", "robin"].contains(&one.name.as_str()));
    main.expect("a pod of a cluster").name.clone()
}

/// The processes in the control groups of a pod, all or those of its main container; systemd writes the uid with
/// underscores.
fn processes_of(uid: &str, main: Option<&str>) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc can be read").flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let of_pod = read("cgroup").replace('_', "-").contains(uid);
        let name = read("comm");
        let of_main = match main {
            None => true,
            Some("robin") => name.starts_with("candor"),
            Some(_) => name.starts_with("valkey-server") || name.starts_with("redis-server"),
        };
        let pause = name.starts_with("pause");
        if of_pod && !pause && of_main {
            found.extend(Pid::from_raw(number));
        }
    }
    found
}
