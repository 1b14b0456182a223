//! An operator in a separate runtime: a kill immediately ends everything that it started.

use std::sync::{Arc, Mutex};

use candor_operator::{Settings, run};
use kube::Client;
use kube_sandbox::faults::Faults;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::Layer;

/// The number of kinds that an operator lists and watches.
pub const KINDS: u64 = 12;

/// One operator process. Dropping it kills it.
pub struct Life {
    pub faults: Faults,
    /// Requests of an earlier operator through the same faults.
    before: u64,
    runtime: Arc<Mutex<Option<Runtime>>>,
    stop: CancellationToken,
    over: CancellationToken,
}

impl Life {
    /// Starts an operator with requests that pass through the faults. A crash rule among them kills it.
    pub fn start(client: Client, faults: Faults, mut settings: Settings) -> Self {
        let before = faults.requests();
        let server = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        let client = Client::new(faults.layer().layer(server), "default");
        if let Some(lease) = &mut settings.lease {
            lease.client = client.clone();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (stop, over) = (CancellationToken::new(), CancellationToken::new());
        let (asked, ended) = (stop.clone(), over.clone().drop_guard());
        runtime.spawn(async move {
            // Losing the lease also ends an operator. The test then starts another one.
            let _ = run(client, settings, asked).await;
            drop(ended);
        });
        let runtime = Arc::new(Mutex::new(Some(runtime)));
        let victim = runtime.clone();
        faults.on_crash(move || kill(&victim));
        Self {
            faults,
            before,
            runtime,
            stop,
            over,
        }
    }

    /// Whether it has requested its initial state: a list and a watch of each kind.
    pub fn is_up(&self) -> bool {
        self.faults.requests() >= self.before + 2 * KINDS
    }

    /// Shuts it down gracefully.
    pub async fn end(self) {
        self.stop.cancel();
        self.over.cancelled().await;
    }

    /// Whether it has ended, by itself or by a kill.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || self.faults.is_crashed()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        kill(&self.runtime);
    }
}

/// Drops all tasks of the runtime at their next await point, without any cleanup requests.
fn kill(runtime: &Mutex<Option<Runtime>>) {
    if let Some(runtime) = runtime.lock().unwrap().take() {
        runtime.shutdown_background();
    }
}
