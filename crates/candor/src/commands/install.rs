//! `candor install`: installs the operator, or prints its manifests.

use std::error::Error;
use std::time::{Duration, Instant};

use candor_operator::manifests::{self, Options, render, yaml};
use candor_operator::runtime::limits;
use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::connect::Connection;
use super::errors::CommandError;
use super::output::print;

/// The name under which an installation owns its fields.
const MANAGER: &str = "candor-install";
/// How often it is asked whether the operator is up.
const PAUSE: Duration = Duration::from_millis(200);

/// Installs the operator, or prints what would be installed.
// Each of them is an independent flag.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Args)]
#[command(mut_arg("namespace", |namespace| namespace.help("The operator's namespace; candor if not given")))]
#[command(after_help = "Examples:
  candor install                                      into namespace candor, for clusters everywhere
  candor install -n ops --watch-namespaces shop,bank  with permissions in these namespaces only
  candor install --render > candor.yaml               changes nothing; kubectl apply --server-side -f candor.yaml")]
pub struct Install {
    /// Prints the manifests and changes nothing; no API server is needed.
    #[arg(long)]
    render: bool,
    /// The operator's image, and the exporter's.
    #[arg(long, value_name = "IMAGE", default_value_t = manifests::image())]
    image: String,
    /// Namespaces to watch for clusters; all if not given. With names nothing is cluster-wide but the CRDs and the admission
    /// policy.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    watch_namespaces: Vec<String>,
    /// How many operators; one is the leader, the others wait for its lease.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: i32,
    /// How many members one cluster may have; a spec that asks for more is rejected.
    #[arg(long, value_name = "N", default_value_t = limits::MAX_MEMBERS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::HIGHEST_MAX_MEMBERS)))]
    max_members: u32,
    /// Leaves the CRDs out, where they are installed already.
    #[arg(long)]
    no_definitions: bool,
    /// Leaves the admission policy out, which limits the operator's account to objects of its clusters; it needs Kubernetes 1.30.
    #[arg(long)]
    no_admission_policy: bool,
    /// A drain takes one of several operators at a time.
    #[arg(long)]
    pod_disruption_budget: bool,
    /// Nothing but the operator's metrics can be reached.
    #[arg(long)]
    network_policy: bool,
    /// Prometheus scrapes the operator; needs the Prometheus operator's CRDs.
    #[arg(long)]
    service_monitor: bool,
    /// Prometheus scrapes every server; needs the Prometheus operator's CRDs.
    #[arg(long)]
    pod_monitor: bool,
    /// Adds the web page for clusters of all namespaces; viewers log in with a Kubernetes token.
    #[arg(long, conflicts_with = "watch_namespaces")]
    web: bool,
    /// The name under which the web page is opened through an Ingress or a Gateway.
    #[arg(long, value_name = "NAME", requires = "web")]
    web_host: Option<String>,
    /// Ends when the operator is up, or fails after so many seconds; 0 does not wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    #[command(flatten)]
    at: Connection,
}

impl Install {
    fn options(&self) -> Options {
        Options {
            namespace: self.at.given_namespace().unwrap_or(manifests::NAMESPACE).to_owned(),
            image: self.image.clone(),
            watch_namespaces: self.watch_namespaces.clone(),
            replicas: self.replicas,
            max_members: self.max_members,
            definitions: !self.no_definitions,
            admission_policy: !self.no_admission_policy,
            budget: self.pod_disruption_budget,
            network_policy: self.network_policy,
            service_monitor: self.service_monitor,
            pod_monitor: self.pod_monitor,
            web: self.web,
            web_host: self.web_host.clone(),
        }
    }

    /// Renders, or applies and waits.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let options = self.options();
        let objects = render(&options);
        if self.render {
            return print(&yaml(&objects)?);
        }
        let client = self.at.connect().await?.client;
        for object in &objects {
            let line = apply(&client, object).await?;
            print(&format!("{line}\n"))?;
        }
        if self.wait > 0 {
            await_operator(&client, &options, Duration::from_secs(self.wait)).await?;
        }
        Ok(())
    }
}

/// Server-side apply of one object; returns `kind/name` and the result, as kubectl prints them.
async fn apply(client: &Client, object: &Value) -> Result<String, CommandError> {
    let desired: DynamicObject = serde_json::from_value(object.clone()).map_err(|error| CommandError::Refused {
        what: format!("{} {}", object["kind"], object["metadata"]["name"]),
        message: error.to_string(),
    })?;
    let name = desired.name_any();
    let types = desired.types.clone().unwrap_or_default();
    let what = format!("{}/{name}", types.kind.to_lowercase());
    let (resource, scope) = served(client, &types).await?;
    let api: Api<DynamicObject> = match (scope, desired.namespace()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    let failed = |error: kube::Error| CommandError::of(&error, &what);
    let before = api.get_opt(&name).await.map_err(failed)?;
    let params = PatchParams::apply(MANAGER).force();
    let after = api
        .patch(&name, &params, &Patch::Apply(&desired))
        .await
        .map_err(failed)?;
    let result = match before {
        None => "created",
        Some(before) if before.resource_version() == after.resource_version() => "unchanged",
        Some(_) => "configured",
    };
    Ok(format!("{what} {result}"))
}

/// The resource of a kind, as this API server has it.
async fn served(client: &Client, types: &TypeMeta) -> Result<(ApiResource, Scope), CommandError> {
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let unknown = || {
        CommandError::Usage(format!(
            "the API server knows no {} of {}: install what defines it first, or leave it out",
            types.kind, types.api_version
        ))
    };
    match pinned_kind(client, &GroupVersionKind::gvk(group, version, &types.kind)).await {
        Ok((resource, capabilities)) => Ok((resource, capabilities.scope)),
        Err(kube::Error::Discovery(_)) => Err(unknown()),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(unknown()),
        Err(error) => Err(CommandError::of(&error, &types.api_version)),
    }
}

/// Waits until every operator has listed what it needs.
async fn await_operator(client: &Client, options: &Options, patience: Duration) -> Result<(), Box<dyn Error>> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), &options.namespace);
    let begun = Instant::now();
    loop {
        let found = api.get(manifests::NAME).await;
        let found = found.map_err(|error| CommandError::of(&error, "the operator's deployment"))?;
        let status = found.status.clone().unwrap_or_default();
        let seen = status.observed_generation == found.metadata.generation;
        let (all, updated) = (status.replicas.unwrap_or(0), status.updated_replicas.unwrap_or(0));
        // While an older version still runs beside it, an available operator may be that one.
        let up = if all == updated {
            status.available_replicas.unwrap_or(0)
        } else {
            0
        };
        if seen && up >= options.replicas {
            return print(&format!("The operator is up in namespace {}.\n", options.namespace));
        }
        if begun.elapsed() > patience {
            return Err(CommandError::Usage(format!(
                "the operator is not up after {} s: {up} of {} are\nLook at: kubectl -n {} describe pods, and kubectl -n {} logs deployment/{}",
                patience.as_secs(),
                options.replicas,
                options.namespace,
                options.namespace,
                manifests::NAME,
            ))
            .into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        install: Install,
    }

    #[test]
    fn without_choices_it_is_what_install_yaml_holds() {
        let line = Line::parse_from(["install"]);
        assert_eq!(line.install.options(), Options::default());
        let file = include_str!("../../../../deploy/install.yaml");
        let text = yaml(&render(&Options::default())).unwrap();
        assert!(file.ends_with(&text), "deploy/install.yaml is old: make generate");
    }

    #[test]
    fn choices_are_taken() {
        let line = Line::parse_from([
            "install",
            "-n",
            "ops",
            "--watch-namespaces",
            "a,b",
            "--replicas",
            "2",
            "--image",
            "r/candor:1",
            "--no-definitions",
            "--pod-monitor",
        ]);
        let options = line.install.options();
        assert_eq!((options.namespace.as_str(), options.replicas), ("ops", 2));
        assert_eq!(options.watch_namespaces, ["a", "b"]);
        assert_eq!(options.image, "r/candor:1");
        assert!(!options.definitions && options.pod_monitor && !options.service_monitor);
    }

    #[test]
    fn help_names_the_namespace_that_is_taken_when_none_is_given() {
        let help = Line::command().render_help().to_string();
        let said = format!("The operator's namespace; {} if not given", manifests::NAMESPACE);
        assert!(help.contains(&said), "{help}");
        assert!(!help.contains("the context's own if not given"), "{help}");
    }

    #[tokio::test]
    async fn applied_twice_it_is_made_once_and_what_nobody_defines_is_named() {
        let sandbox = kube_sandbox::Sandbox::bare().await.unwrap();
        for word in ["created", "unchanged"] {
            for object in render(&Options::default()) {
                let line = apply(&sandbox.client(), &object).await.unwrap();
                assert!(line.ends_with(word), "{line}");
            }
        }
        let monitored = Options {
            service_monitor: true,
            ..Options::default()
        };
        let monitor = render(&monitored).pop().unwrap();
        let words = apply(&sandbox.client(), &monitor).await.unwrap_err().to_string();
        assert!(
            words.contains("knows no ServiceMonitor of monitoring.coreos.com/v1: install what defines it first"),
            "{words}"
        );
    }
}
