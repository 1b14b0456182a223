//! Sends the same seeded request sequences to the sandbox and to a real kube-apiserver, and compares the answers.
//!
//! `conformance --real KUBECONFIG [--seed N] [--sequences N] [--length N] [--only N] [--concurrent N]
//! [--sandbox KUBECONFIG]`
//!
//! What must differ (ids, times, versions, generated names, addresses) is left out of the comparison; everything else
//! counts: codes, reasons, messages, warnings, whole bodies with their managed fields, and the events of watches.

#![recursion_limit = "256"]

mod concurrent;
mod generate;
mod known;
mod normal;
mod objects;
mod operation;
mod random;
mod report;
mod server;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures::StreamExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use generate::{Sequence, collection, sequence};
use operation::Operation;
use report::Report;
use server::Server;

struct Options {
    real: PathBuf,
    sandbox: Option<PathBuf>,
    seed: u64,
    sequences: u64,
    length: u64,
    only: Option<u64>,
    /// Rounds of concurrent requests.
    concurrent: u64,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        real: PathBuf::new(),
        sandbox: None,
        seed: 1,
        sequences: 1000,
        length: 20,
        only: None,
        concurrent: 10,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{arg} needs a number, not {value}"))
        };
        match arg.as_str() {
            "--real" => options.real = value.into(),
            "--sandbox" => options.sandbox = Some(value.into()),
            "--seed" => options.seed = number()?,
            "--sequences" => options.sequences = number()?,
            "--length" => options.length = number()?,
            "--concurrent" => options.concurrent = number()?,
            "--only" => options.only = Some(number()?),
            _ => return Err(format!("{arg} is not known")),
        }
    }
    if options.real.as_os_str().is_empty() {
        return Err("give the real server's kubeconfig: --real FILE (make kube starts one)".into());
    }
    Ok(options)
}

async fn client(path: &std::path::Path) -> Result<kube::Client, Box<dyn std::error::Error>> {
    let config =
        kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    match run(&options).await {
        Ok(report) => {
            report.print(options.seed);
            if report.unexplained() == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(options: &Options) -> Result<Report, Box<dyn std::error::Error>> {
    let real = client(&options.real).await?;
    let mut own = None;
    let ours = if let Some(path) = &options.sandbox {
        client(path).await?
    } else {
        let sandbox = kube_sandbox::Sandbox::bare().await?;
        own.insert(sandbox).client()
    };
    for client in [&real, &ours] {
        define(client).await?;
    }
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let run = format!("{:x}", run.as_secs());
    let report = Arc::new(std::sync::Mutex::new(Report::new(options.only.is_some())));
    let numbers: Vec<u64> = match options.only {
        Some(number) => vec![number],
        None => (0..options.sequences).collect(),
    };
    futures::stream::iter(numbers)
        .for_each_concurrent(4, |number| {
            let (real, ours, report) = (Server::new(real.clone()), Server::new(ours.clone()), report.clone());
            let sequence = sequence(&run, options.seed, number, options.length);
            async move {
                let found = both(sequence, real, ours, options.only.is_some()).await;
                if let Ok(mut report) = report.lock() {
                    report.add(number, found);
                }
            }
        })
        .await;
    if options.only.is_none() && options.concurrent > 0 {
        let namespace = format!("concurrent-{run}");
        for client in [&real, &ours] {
            prepare(&mut Server::new(client.clone()), &namespace).await;
        }
        for round in 0..options.concurrent {
            let found = concurrent::round(&namespace, round, &real, &ours).await;
            if let Ok(mut report) = report.lock() {
                report.add(options.sequences + round, found);
            }
        }
    }
    drop(own);
    let mut report = report.lock().map_err(|_| "a sequence panicked")?;
    Ok(std::mem::take(&mut *report))
}

/// The custom resource both servers serve, there and established.
async fn define(client: &kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::new(client.clone());
    let base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = server
        .send(&Operation::new("define", "POST", base).json(objects::definition()))
        .await;
    if !matches!(made.code, 201 | 409) {
        return Err(format!("the CRD of widgets was rejected: {}", made.body).into());
    }
    let name = objects::definition()["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let now = server
            .send(&Operation::new("defined", "GET", format!("{base}/{name}")))
            .await;
        let conditions = now.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let served = server
            .send(&Operation::new("served", "GET", "/apis/conformance.dev/v1/widgets"))
            .await
            .code
            == 200;
        if served
            && conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True")
        {
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            return Err(format!("widgets were not established in time: {}", now.body["status"]).into());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// One sequence on both servers, one request after the other, then the watches over all of it. `print` prints the requests.
async fn both(sequence: Sequence, mut real: Server, mut ours: Server, print: bool) -> Vec<report::Compared> {
    let mut compared = Vec::new();
    let mut starts = Vec::new();
    for server in [&mut real, &mut ours] {
        prepare(server, &sequence.namespace).await;
        let mut versions = Vec::new();
        for kind in &sequence.kinds {
            versions.push(server.version(&collection(kind, &sequence.namespace)).await);
        }
        starts.push(versions);
    }
    for operation in sequence.operations {
        let (a, b) = tokio::join!(real.send(&operation), ours.send(&operation));
        let (a, b) = (normal::normal(&a), normal::normal(&b));
        if print {
            println!(
                "{operation}\n  -> {} {}",
                a["code"],
                a["body"]["message"].as_str().unwrap_or_default()
            );
        }
        let one = report::Compared::new(operation, &a, &b);
        let parted = one.parts_the_servers();
        compared.push(one);
        // Two servers that hold different objects answer everything after that differently.
        if parted {
            return compared;
        }
    }
    for (at, kind) in sequence.kinds.iter().enumerate() {
        let path = collection(kind, &sequence.namespace);
        let mut random = random::Random::seeded(at as u64);
        let mut end = objects::object(kind, &sequence.namespace, "zz-end", &mut random);
        end["metadata"]["labels"]["tier"] = json!("web");
        let end = Operation::new("end", "POST", path.clone()).json(end);
        tokio::join!(real.send(&end), ours.send(&end));
        for selector in [None, Some("tier=web")] {
            let (a, b) = tokio::join!(
                events(&real, &path, &starts[0][at], selector),
                events(&ours, &path, &starts[1][at], selector)
            );
            let label = format!(
                "watch{} {}",
                if selector.is_some() { "-selected" } else { "" },
                kind.plural
            );
            compared.push(report::Compared::new(
                Operation::new(label, "GET", path.clone()),
                &a,
                &b,
            ));
        }
        let query = BTreeMap::from([
            ("sendInitialEvents".to_owned(), "true".to_owned()),
            ("resourceVersionMatch".to_owned(), "NotOlderThan".to_owned()),
            ("allowWatchBookmarks".to_owned(), "true".to_owned()),
        ]);
        let bookmark = |event: &Value| event["type"] == "BOOKMARK";
        let (a, b) = tokio::join!(real.watch(&path, &query, bookmark), ours.watch(&path, &query, bookmark));
        let label = format!("watch-initial {}", kind.plural);
        compared.push(report::Compared::new(
            Operation::new(label, "GET", path.clone()),
            &cleaned(a),
            &cleaned(b),
        ));
        // The real server's addresses for services are few.
        if kind.name == "Service" {
            let free = Operation::new("free", "DELETE", path);
            tokio::join!(real.send(&free), ours.send(&free));
        }
    }
    compared
}

async fn events(server: &Server, path: &str, from: &str, selector: Option<&str>) -> Value {
    let mut query = BTreeMap::from([("resourceVersion".to_owned(), from.to_owned())]);
    if let Some(selector) = selector {
        query.insert("labelSelector".into(), selector.into());
    }
    let last = |event: &Value| event["object"]["metadata"]["name"] == "zz-end";
    cleaned(server.watch(path, &query, last).await)
}

fn cleaned(events: Vec<Value>) -> Value {
    let mut events = Value::from(events);
    normal::clean(&mut events, "");
    events
}

/// Creates a namespace that holds only the service account that pods need. The sandbox adds further objects to a new
/// namespace, which the real server leaves to a controller that does not run here; they are deleted.
async fn prepare(server: &mut Server, namespace: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    server
        .send(&Operation::new("namespace", "POST", "/api/v1/namespaces").json(body))
        .await;
    let path = format!("/api/v1/namespaces/{namespace}");
    for added in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
        server
            .send(&Operation::new("empty", "DELETE", format!("{path}/{added}")))
            .await;
    }
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    server
        .send(&Operation::new("account", "POST", format!("{path}/serviceaccounts")).json(account))
        .await;
}
