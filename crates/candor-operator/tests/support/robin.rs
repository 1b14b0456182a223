//! Robin in a pod without a kubelet: the real agent, with the files of its objects, in a runtime of its own that can be
//! killed at any moment. A test may put something else in its place.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use candor_operator::kinds::redkey::objects::{ROBIN_PORT, RobinCredentials};
use candor_operator::kinds::redkey::robin::agent::{Planning, RobinSettings, run};
use candor_operator::kinds::redkey::robin::link::{
    Frame, Identity, LinkListener, PATH, RobinEndpoint, RobinLinks, RobinView,
};
use candor_operator::kinds::redkey::robin::server::serve;
use candor_operator::monitor::{ClusterKey, ClusterKind};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{Api, Client, ResourceExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;
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

/// What runs as Robin.
#[derive(Clone, Default)]
pub enum Acting {
    /// The real one.
    #[default]
    Robin,
    /// A frozen process: it accepts connections and never replies.
    Silent,
    /// A Robin of an older version, with the right credentials.
    Older,
    /// Another program without Robin's credentials, which replies to every request that all is well.
    Foreign(Arc<Frame>),
    /// A Robin with the right credentials that reports the same for ever.
    Stale(Arc<Frame>),
}

/// What the next process in a pod of Robin will be. Clones are handles.
#[derive(Clone, Default)]
pub struct Casting(Arc<Mutex<Acting>>);

impl Casting {
    pub fn next(&self, acting: Acting) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = acting;
    }

    fn take(&self) -> Acting {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the real Robin at this address observes.
pub async fn frame(client: Client, cluster: &str, ip: IpAddr) -> Arc<Frame> {
    let credentials = credentials(&client, cluster).await;
    let (sender, mut triggers) = unbounded_channel();
    let links = RobinLinks::new(sender);
    let key = ClusterKey {
        kind: ClusterKind::Redkey,
        namespace: "default".to_owned(),
        name: cluster.to_owned(),
    };
    links.follow(&key, Some(RobinEndpoint::new(ip, &credentials).unwrap()));
    loop {
        if let RobinView::Live { frame, .. } = links.view(&key) {
            return frame;
        }
        triggers.recv().await.unwrap();
    }
}

async fn credentials(client: &Client, cluster: &str) -> RobinCredentials {
    let api: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = api.get(&format!("{cluster}-robin")).await.unwrap();
    RobinCredentials::from_secret(&secret).unwrap()
}

/// Runs Robin in the pods of its Deployment, and nothing in others.
pub fn robins(client: Client, casting: Casting) -> Program {
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
        match casting.take() {
            Acting::Robin => drop(runtime.spawn(live(client.clone(), pod, ip))),
            acting => drop(runtime.spawn(act(client.clone(), pod, ip, acting))),
        }
        Box::new(Robin(Some(runtime)))
    })
}

/// Runs something else in Robin's place.
async fn act(client: Client, pod: Arc<Pod>, ip: IpAddr, acting: Acting) {
    let cluster = pod.labels()["redkey-cluster-name"].clone();
    let own = credentials(&client, &cluster).await;
    let address = RobinEndpoint::new(ip, &own).unwrap().address;
    let listener = bind(address).await;
    let (credentials, answer) = match acting {
        Acting::Silent => return std::future::pending().await,
        Acting::Older => (own, said("0", &Bytes::new())),
        Acting::Stale(frame) => (own, said("1", &frame.encode().unwrap())),
        Acting::Foreign(frame) => {
            let other = RobinCredentials::generate(&cluster, &ring::rand::SystemRandom::new()).unwrap();
            (other, said("1", &frame.encode().unwrap()))
        }
        Acting::Robin => return,
    };
    let plain = bind(SocketAddr::new(ip, ROBIN_PORT)).await;
    let ready = Router::new().fallback(any(async || r#"{"status":"Ready"}"#));
    tokio::spawn(serve(plain, ready));
    let identity = Identity::new(&credentials.certificate, &credentials.private_key).unwrap();
    let router = Router::new().route(PATH, post(async move || answer()));
    LinkListener { listener, identity }.serve(router).await.unwrap();
}

/// Listens at an address, as soon as the process before has left it.
async fn bind(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A reply of this protocol: one line, and then heartbeats.
fn said(protocol: &'static str, line: &Bytes) -> impl Fn() -> Response + Clone + Send + Sync + 'static {
    let line = line.clone();
    move || {
        let beats = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(500)).await;
            Some((Bytes::from_static(b"\n"), ()))
        });
        let lines = stream::iter([line.clone()]).chain(beats).map(Ok::<_, std::io::Error>);
        ([("candor-protocol", protocol)], Body::from_stream(lines)).into_response()
    }
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
