//! What an installation consists of, as objects: the one source of `deploy/install.yaml`, of `candor install` and of the
//! Helm chart.
//!
//! | you look for | it is in |
//! |---|---|
//! | what the operator may do, and what people need | [`rights`] |
//! | what its account may write, whoever has its token | `admission` |
//! | namespace, account, deployment, service, budget, network | `operator` |
//! | what Prometheus shall scrape | `monitors` |
//! | alerts and a dashboard | [`alerts`], [`mod@dashboard`] |
//! | the same as a Helm chart | [`chart`] |

mod admission;
pub mod alerts;
pub mod chart;
pub mod dashboard;
mod monitors;
mod operator;
pub mod rights;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use operator::selector_text as selector;

/// The name of the operator's objects, and of its lease.
pub const NAME: &str = "candor-operator";
/// Where the operator lives unless said otherwise.
pub const NAMESPACE: &str = "candor";
/// Where `/healthz`, `/readyz` and `/metrics` are served.
pub const PORT: u16 = 8080;

/// What can be chosen.
// Each of them is one object that is there or not.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the operator lives.
    pub namespace: String,
    /// What runs it; also the exporter beside every server.
    pub image: String,
    /// Where it looks for clusters; empty: everywhere. With names here nothing is cluster-wide but the definitions and the
    /// admission policy.
    pub watch_namespaces: Vec<String>,
    /// How many of it; one acts, the others wait for its lease.
    pub replicas: i32,
    /// How many members one cluster may have.
    pub max_members: u32,
    /// Whether the definitions are part of it.
    pub definitions: bool,
    /// The operator's account writes only objects of its clusters (needs Kubernetes 1.30).
    pub admission_policy: bool,
    /// A drain leaves one of several operators standing.
    pub budget: bool,
    /// Nothing but its metrics can be reached.
    pub network_policy: bool,
    /// Prometheus scrapes the operator (needs the Prometheus operator's definitions).
    pub service_monitor: bool,
    /// Prometheus scrapes every member (needs the Prometheus operator's definitions).
    pub pod_monitor: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            image: image(),
            watch_namespaces: Vec::new(),
            replicas: 1,
            max_members: crate::limits::MAX_MEMBERS,
            definitions: true,
            admission_policy: true,
            budget: false,
            network_policy: false,
            service_monitor: false,
            pod_monitor: false,
        }
    }
}

/// The image of this version.
pub fn image() -> String {
    format!("candor:{}", env!("CARGO_PKG_VERSION"))
}

/// Every object, in the order they are applied: what others rest on comes first.
pub fn render(options: &Options) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.definitions {
        objects.extend(candor_api::crds::served().iter().map(candor_api::crds::json));
    }
    objects.push(operator::namespace(options));
    objects.push(operator::account(options));
    objects.extend(rights::objects(options));
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
        objects.push(monitors::of_members(options));
    }
    objects
}

/// Objects as one YAML text.
pub fn yaml(objects: &[Value]) -> Result<String, serde_norway::Error> {
    let texts: Vec<String> = objects.iter().map(serde_norway::to_string).collect::<Result<_, _>>()?;
    Ok(texts.join("---\n"))
}
