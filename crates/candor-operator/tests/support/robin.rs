//! Robin in a pod without a kubelet: the real agent, with the files of its objects, in a runtime of its own that can be
//! killed at any moment.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use candor_operator::kinds::redkey::robin::agent::{Planning, RobinSettings, run};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{Api, Client, ResourceExt};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use valkey_sim::pods::Program;

/// A running Robin. Dropping it kills it: nothing that it began is finished.
struct Robin(Option<Runtime>);

impl Drop for Robin {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs Robin in the pods of its Deployment, and nothing in others.
pub fn robins(client: Client) -> Program {
    Arc::new(move |pod: Arc<Pod>, ip: IpAddr| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        if !containers.into_iter().any(|one| one.name == "robin") {
            return Box::new(());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(live(client.clone(), pod, ip));
        Box::new(Robin(Some(runtime)))
    })
}

async fn live(client: Client, pod: Arc<Pod>, ip: IpAddr) {
    let folder = tempfile::tempdir().unwrap();
    let settings = RobinSettings {
        config: folder.path().join("application-configmap.yml"),
        credentials: folder.path().to_owned(),
        address: ip,
    };
    let mut written = false;
    let (follow, place) = (client.clone(), folder.path().to_owned());
    while !written {
        written = write(&follow, &pod, &place).await.is_some();
    }
    let files = tokio::spawn(async move {
        // As a kubelet does, but sooner.
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            write(&follow, &pod, &place).await;
        }
    });
    let end = run(client, settings, Planning::default(), CancellationToken::new()).await;
    files.abort();
    panic!("Robin ended by itself: {end:?}");
}

/// Writes the files of its volumes; none if an object is missing.
async fn write(client: &Client, pod: &Pod, folder: &Path) -> Option<()> {
    let namespace = pod.namespace()?;
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        if let Some(source) = &volume.config_map {
            let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
            for (name, text) in api.get_opt(&source.name).await.ok()??.data? {
                put(folder, &name, text.as_bytes());
            }
        }
        if let Some(name) = volume.secret.as_ref().and_then(|source| source.secret_name.as_ref()) {
            let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
            for (name, bytes) in api.get_opt(name).await.ok()??.data? {
                put(folder, &name, &bytes.0);
            }
        }
    }
    Some(())
}

/// Replaces a file whole: a reader never sees half of it.
fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let new = folder.join(format!(".{name}"));
    std::fs::write(&new, bytes).unwrap();
    std::fs::rename(new, folder.join(name)).unwrap();
}
