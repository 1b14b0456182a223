//! `make example`: the operator and a stand-in for its server on a sandbox, and what the status says while health,
//! database and configuration are made to fail and recover. Ends by itself; fails when something is not as promised.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use dittofs_operator::api::{DittoServer, DittoServerStatus};
use dittofs_operator::conditions::{CONTROLLER, ServerCondition};
use dittofs_operator::objects::percona;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, LogParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::core::gvk::GroupVersionKind;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use kube_sandbox::Sandbox;
use kube_status::{find, same_except_generation};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Longer than any step takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let images = folder.path().join("images.yaml");
    std::fs::write(&images, images_of(&std::env::current_exe()?)?)?;
    let sandbox = Sandbox::builder().images(&images).start().await?;
    let show = Show::of(&sandbox);
    if let Err(failure) = Box::pin(play(&show)).await {
        println!("\nNot as promised: {failure}\n{}", show.operator_log().await);
        return Err(failure);
    }
    println!("\nEverything as promised, in {} s.", show.began.elapsed().as_secs());
    Ok(())
}

/// Which image stands for which of this build's programs, for the sandbox.
fn images_of(demo: &Path) -> Result<String, Failure> {
    let programs = demo.parent().and_then(Path::parent).ok_or("the demo has no folder")?;
    for program in ["dittofs-operator", "dittofs-standin"] {
        if !programs.join(program).exists() {
            return Err(format!("{program} is not built: start this with `make example`").into());
        }
    }
    let programs = programs.display();
    Ok(format!(
        "images:
  - match: '*dittofs/dittofs-operator:*'
    binds: [{{source: '{programs}/dittofs-operator', target: /opt/dittofs-operator}}]
    entrypoint: [/opt/dittofs-operator]
  - match: '*dittofs/dittofs:*'
    binds: [{{source: '{programs}/dittofs-standin', target: /opt/dittofs-standin}}]
    entrypoint: [dittofs]
    programs:
      - {{name: dittofs, path: /opt/dittofs-standin, after: [--bind, $POD_IP]}}
"
    ))
}

/// The acts, in order.
async fn play(show: &Show) -> Result<(), Failure> {
    use ServerCondition::{Available, ConfigReady, DatabaseReady, Ready};
    act("The operator is installed and started, as a pod with the rights of its manifest");
    show.apply(include_str!("../deploy/crd.yaml")).await?;
    show.apply(include_str!("../deploy/operator.yaml")).await?;
    show.pod_runs("dittofs-system", "app.kubernetes.io/name=dittofs-operator")
        .await?;

    act("A server with a database is asked for, but nothing here knows such databases");
    show.apply(include_str!("../deploy/sample.yaml")).await?;
    show.expect_condition(DatabaseReady, "False PerconaNotInstalled")
        .await?;

    act("The database's definition is installed, and its operator (we play it) takes its time");
    show.apply(include_str!("../demo/perconapgclusters.yaml")).await?;
    show.expect_condition(DatabaseReady, "False PerconaNotReady").await?;
    show.database_is("initializing").await?;
    show.database_is("ready").await?;
    show.expect_condition(Ready, "True AllSystemsGo").await?;

    act("The server's readiness page is set to fail (three probes, five seconds apart)");
    show.set_server_health("/stand-in/ready/fail").await?;
    show.expect_condition(Available, "False StatefulSetNotReady").await?;
    act("... and to recover");
    show.set_server_health("/stand-in/ready/recover").await?;
    show.expect_condition(Ready, "True AllSystemsGo").await?;

    act("The database is paused");
    show.database_is("paused").await?;
    show.expect_condition(Ready, "False ComponentsNotReady").await?;
    act("... and comes back");
    show.database_is("ready").await?;
    show.expect_condition(Ready, "True AllSystemsGo").await?;

    act("Somebody breaks the configuration: the server goes on with the last good one");
    show.configure("logging: [").await?;
    show.expect_condition(ConfigReady, "False InvalidConfig").await?;
    show.expect_condition(Available, "True StatefulSetReady").await?;
    act("... and mends it with a new one: the pod rolls");
    let before = show.pod().await?.uid();
    show.configure("logging: {level: DEBUG}").await?;
    show.expect_condition(ConfigReady, "True ConfigValid").await?;
    show.expect_condition(Ready, "True AllSystemsGo").await?;
    check(show.pod().await?.uid() != before, "the pod was replaced")?;
    let read = show.get_from_server("GET", "/stand-in/config").await?;
    check(
        read.ends_with("logging: {level: DEBUG}"),
        "the server reads the new configuration",
    )?;

    act("The server is deleted; its database is to be kept");
    show.servers().delete("files", &DeleteParams::default()).await?;
    show.watched("the server gone", |server| server.is_none()).await?;
    let retained = show.databases().get("files-postgres").await?;
    check(
        retained.metadata.deletion_timestamp.is_none() && retained.owner_references().is_empty(),
        "the database is kept",
    )?;
    println!("           PerconaPGCluster files-postgres is there, and nobody's");

    act("Recorded events:");
    show.events().await
}

fn act(title: &str) {
    println!("\n{title}");
}

fn check(holds: bool, what: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected that {what}").into())
    }
}

struct Show {
    client: Client,
    began: Instant,
    server: Mutex<Watched>,
}

/// The server as the watch last delivered it, and the watch.
struct Watched {
    now: Option<DittoServer>,
    changes: BoxStream<'static, watcher::Result<watcher::Event<DittoServer>>>,
}

impl Show {
    fn of(sandbox: &Sandbox) -> Self {
        let client = sandbox.client();
        let servers = Api::<DittoServer>::namespaced(client.clone(), "default");
        Self {
            client,
            began: Instant::now(),
            server: Mutex::new(Watched {
                now: None,
                changes: watcher(servers, watcher::Config::default()).boxed(),
            }),
        }
    }

    /// One line, cut to the terminal where there is one.
    fn print_line(&self, text: &str) {
        let line = format!("  {:5.1} s  {text}", self.began.elapsed().as_secs_f64());
        let width = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
        if width > 40 && line.chars().count() > width {
            let cut: String = line.chars().take(width - 4).collect();
            println!("{cut} ...");
        } else {
            println!("{line}");
        }
    }

    /// Follows the server until it is as expected. Every change is printed as it comes, and every five seconds without one
    /// what is waited for.
    async fn watched(&self, what: &str, expected: impl Fn(Option<&DittoServer>) -> bool) -> Result<(), Failure> {
        let mut server = self.server.lock().await;
        let began = Instant::now();
        while !expected(server.now.as_ref()) {
            if began.elapsed() > PATIENCE {
                return Err(format!("waited {} s for {what}", began.elapsed().as_secs()).into());
            }
            let Ok(Some(change)) = timeout(Duration::from_secs(5), server.changes.next()).await else {
                self.print_line(&format!("... waiting for {what}"));
                continue;
            };
            let next = match change? {
                watcher::Event::Apply(next) | watcher::Event::InitApply(next) => Some(next),
                watcher::Event::Delete(_) => None,
                watcher::Event::Init | watcher::Event::InitDone => continue,
            };
            let status = |server: &Option<DittoServer>| server.as_ref().and_then(|one| one.status.clone());
            let (before, after) = (status(&server.now), status(&next));
            self.narrate(&before.unwrap_or_default(), &after.unwrap_or_default());
            server.now = next;
        }
        Ok(())
    }

    fn narrate(&self, before: &DittoServerStatus, after: &DittoServerStatus) {
        for one in &after.conditions {
            if !before.conditions.iter().any(|known| same_except_generation(known, one)) {
                let message = one.message.replace('\n', " ");
                self.print_line(&format!(
                    "{:<13} {:<7} {:<19} {message}",
                    one.type_, one.status, one.reason
                ));
            }
        }
        if let Some(phase) = after.phase.filter(|phase| before.phase != Some(*phase)) {
            self.print_line(&format!("phase         {phase:?}"));
        }
    }

    fn servers(&self) -> Api<DittoServer> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn databases(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &percona())
    }

    /// Asks until there is an answer, says every five seconds that it still waits, and gives up in time.
    async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
        let (began, mut reports) = (Instant::now(), 1);
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            let waited = began.elapsed();
            if waited > PATIENCE {
                return Err(format!("waited {} s for {what}", waited.as_secs()).into());
            }
            if waited.as_secs() >= 5 * reports {
                println!("  {:5.1} s  ... waiting for {what}", self.began.elapsed().as_secs_f64());
                reports += 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn expect_condition(&self, type_: ServerCondition, expected: &str) -> Result<(), Failure> {
        self.watched(&format!("{}={expected}", type_.as_ref()), |server| {
            let status = server.and_then(|one| one.status.as_ref());
            let found = status.and_then(|status| find(&status.conditions, type_));
            found.is_some_and(|one| format!("{} {}", one.status, one.reason) == expected)
        })
        .await
    }

    /// `kubectl apply`, server side.
    async fn apply(&self, manifests: &str) -> Result<(), Failure> {
        for text in manifests.split("\n---") {
            let object: Value = serde_saphyr::from_str(text)?;
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = text("/apiVersion")
                .rsplit_once('/')
                .unwrap_or(("", text("/apiVersion")));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
            let wide = [
                "CustomResourceDefinition",
                "Namespace",
                "ClusterRole",
                "ClusterRoleBinding",
            ];
            let api: Api<DynamicObject> = match text("/metadata/namespace") {
                _ if wide.contains(&text("/kind")) => Api::all_with(self.client.clone(), &resource),
                "" => Api::namespaced_with(self.client.clone(), "default", &resource),
                namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
            };
            let params = PatchParams::apply("demo").force();
            api.patch(text("/metadata/name"), &params, &Patch::Apply(&object))
                .await?;
            println!("           {} {} applied", text("/kind"), text("/metadata/name"));
        }
        Ok(())
    }

    async fn pod_runs(&self, namespace: &str, labels: &str) -> Result<(), Failure> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let selected = ListParams::default().labels(labels);
        self.until(&format!("the pod of {labels}"), async || {
            let found = pods.list(&selected).await?.items;
            let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
            Ok(found.iter().any(runs).then_some(()))
        })
        .await
    }

    async fn configure(&self, config: &str) -> Result<(), Failure> {
        println!("           spec.config: {config:?}");
        let patch = Patch::Merge(json!({"spec": {"config": config}}));
        self.servers().patch("files", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// What Percona's operator would write.
    async fn database_is(&self, state: &str) -> Result<(), Failure> {
        let name = "files-postgres";
        self.until("the database", async || Ok(self.databases().get_opt(name).await?))
            .await?;
        println!("           PerconaPGCluster {name}: {state}");
        let patch = Patch::Merge(json!({"status": {"state": state}}));
        self.databases()
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    async fn pod(&self) -> Result<Pod, Failure> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        Ok(pods.get("files-0").await?)
    }

    async fn set_server_health(&self, path: &str) -> Result<(), Failure> {
        let answer = self.get_from_server("POST", path).await?;
        check(answer.starts_with("HTTP/1.1 204"), "the stand-in obeys")
    }

    /// One request to the server itself, at its pod's address.
    async fn get_from_server(&self, method: &str, path: &str) -> Result<String, Failure> {
        let status = self.pod().await?.status.unwrap_or_default();
        let address = status.pod_ip.ok_or("the pod has no address")?;
        println!("           {method} http://{address}:8080{path}");
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: dittofs\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let answer = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect((address.as_str(), 8080))?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        Ok(answer.await??)
    }

    async fn events(&self) -> Result<(), Failure> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let mut events = events.list(&ListParams::default()).await?.items;
        events.retain(|event| event.reporting_component.as_deref() == Some(CONTROLLER));
        events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        for event in &events {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            println!(
                "  {:<8} {:<16} {} (x{})",
                text(&event.type_),
                text(&event.reason),
                text(&event.message),
                event.count.unwrap_or(1)
            );
        }
        let is_recorded = events
            .iter()
            .any(|event| event.reason.as_deref() == Some("PerconaOrphaned"));
        check(is_recorded, "the retention of the database is recorded")
    }

    async fn operator_log(&self) -> String {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "dittofs-system");
        let found = pods.list(&ListParams::default()).await;
        let mut out = String::from("The end of the operator's log:\n");
        for pod in found.map(|list| list.items).unwrap_or_default() {
            let params = LogParams {
                tail_lines: Some(20),
                ..LogParams::default()
            };
            let log = pods.logs(&pod.name_any(), &params).await.unwrap_or_default();
            let _ = writeln!(out, "{log}");
        }
        out
    }
}
