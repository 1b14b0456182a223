//! The objects of an installation: the single source of `deploy/install.yaml`, of `candor install` and of the Helm
//! chart.
//!
//! | topic | module |
//! |---|---|
//! | RBAC permissions of the operator and of users | [`permissions`] |
//! | admission policy: what the operator's service account may write, even with a stolen token | `admission` |
//! | namespace, service account, Deployment, Service, PodDisruptionBudget, network policy | `operator` |
//! | scrape targets of Prometheus | `monitors` |
//! | alerts and a dashboard | [`alerts`], [`mod@dashboard`] |
//! | the web page | `web` |
//! | the same as a Helm chart | [`chart`] |

mod admission;
pub mod alerts;
pub mod chart;
pub mod dashboard;
mod monitors;
mod operator;
pub mod permissions;
#[cfg(test)]
mod tests;
mod web;

use serde_json::Value;

pub use operator::selector_text as selector;
pub use web::{WEB, WEB_PORT};

/// The name of the operator's objects, and of its lease.
pub const NAME: &str = "candor-operator";
/// The default namespace of the operator.
pub const NAMESPACE: &str = "candor";
/// Where `/healthz`, `/readyz` and `/metrics` are served.
pub const PORT: u16 = 8080;

/// Options of an installation.
// Each bool includes or omits objects independently of the others.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The operator's namespace.
    pub namespace: String,
    /// The image of the operator; also of the exporter beside every server.
    pub image: String,
    /// Namespaces to watch for clusters; empty: all. If it names any, the CRDs and the admission policy are the only
    /// cluster-scoped objects.
    pub watch_namespaces: Vec<String>,
    /// Number of operator replicas; one acts, the others wait for its lease.
    pub replicas: i32,
    /// Maximum number of members of one cluster.
    pub max_members: u32,
    /// Whether to include the CRDs.
    pub definitions: bool,
    /// Whether to restrict the operator's service account to objects of its clusters (needs Kubernetes 1.30).
    pub admission_policy: bool,
    /// Whether to add a PodDisruptionBudget, so that a drain leaves one of several operators running.
    pub budget: bool,
    /// Whether to add a network policy that allows only its metrics port to be reached.
    pub network_policy: bool,
    /// Whether Prometheus scrapes the operator (needs the CRDs of the Prometheus operator).
    pub service_monitor: bool,
    /// Whether Prometheus scrapes every member and every Robin (needs the CRDs of the Prometheus operator).
    pub pod_monitor: bool,
    /// Whether to add the web page, which shows clusters of all namespaces to those who may see them.
    pub web: bool,
    /// The name under which the page is opened, beside localhost.
    pub web_host: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            image: image(),
            watch_namespaces: Vec::new(),
            replicas: 1,
            max_members: crate::runtime::limits::MAX_MEMBERS,
            definitions: true,
            admission_policy: true,
            budget: false,
            network_policy: false,
            service_monitor: false,
            pod_monitor: false,
            web: false,
            web_host: None,
        }
    }
}

/// The image of this version.
pub fn image() -> String {
    format!("candor:{}", env!("CARGO_PKG_VERSION"))
}

/// Renders every object in the order of application: dependencies come first.
pub fn render(options: &Options) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.definitions {
        objects.extend(candor_api::crds::all().iter().map(candor_api::crds::json));
    }
    objects.push(operator::namespace(options));
    objects.push(operator::account(options));
    objects.extend(permissions::objects(options));
    if options.admission_policy {
        objects.extend(admission::objects(options));
    }
    objects.push(operator::service(options));
    objects.push(operator::deployment(options));
    if options.budget {
        objects.push(operator::budget(options));
    }
    if options.network_policy {
        objects.push(operator::network_policy(options));
    }
    if options.service_monitor {
        objects.push(monitors::of_operator(options));
    }
    if options.pod_monitor {
        objects.extend([monitors::of_members(options), monitors::of_robins(options)]);
    }
    if options.web {
        objects.extend(web::objects(options));
    }
    objects
}

/// Serializes objects as one YAML text.
pub fn yaml(objects: &[Value]) -> Result<String, serde_norway::Error> {
    let texts: Vec<String> = objects.iter().map(serde_norway::to_string).collect::<Result<_, _>>()?;
    Ok(texts.join("---\n"))
}
