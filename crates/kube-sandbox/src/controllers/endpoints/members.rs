//! Which pods belong to a service, with which addresses and ports. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::controllers::pods;

/// A port of the service as one pod offers it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// The service port's name, empty if it has none.
    pub name: String,
    /// The number on the pod.
    pub number: i32,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: String,
    /// The service port's application protocol.
    pub app: Option<String>,
}

/// A pod behind a service.
#[derive(Clone, Debug)]
pub struct Member {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its address.
    pub ip: String,
    /// Its ports, sorted.
    pub ports: Vec<Port>,
    /// Its name in the service's domain.
    pub hostname: Option<String>,
    /// Passes its readiness checks (or the service does not care).
    pub serving: bool,
    /// Being deleted.
    pub terminating: bool,
}

/// Whether a service is headless: without a cluster IP.
pub fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

/// Whether unready pods count too.
pub fn takes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// Whether a service selects a pod. Without a selector someone else writes the endpoints.
pub fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
    })
}

/// The members of a service, sorted by address.
pub fn members(service: &Service, pods: &[Arc<Pod>]) -> Vec<Member> {
    let mut members: Vec<Member> = pods
        .iter()
        .filter(|pod| selects(service, pod) && !pods::is_finished(pod))
        .filter_map(|pod| member(service, pod))
        .collect();
    members.sort_by(|a, b| (&a.ip, a.pod.uid()).cmp(&(&b.ip, b.pod.uid())));
    members
}

fn member(service: &Service, pod: &Arc<Pod>) -> Option<Member> {
    let ip = pod.status.as_ref()?.pod_ip.clone().filter(|ip| !ip.is_empty())?;
    let spec = pod.spec.as_ref()?;
    let in_domain = spec.subdomain == service.metadata.name && pod.namespace() == service.namespace();
    let hostname = spec.hostname.clone().filter(|name| !name.is_empty() && in_domain);
    let desired = service
        .spec
        .as_ref()
        .and_then(|spec| spec.ports.as_deref())
        .unwrap_or_default();
    let mut ports: Vec<Port> = desired.iter().filter_map(|port| resolve(port, pod)).collect();
    ports.sort();
    if ports.is_empty() && !(desired.is_empty() && is_headless(service)) {
        return None;
    }
    Some(Member {
        pod: pod.clone(),
        ip,
        ports,
        hostname,
        serving: pods::is_ready(pod),
        terminating: pods::is_terminating(pod),
    })
}

/// The number behind a service port: given, or found by its name among the containers' ports.
fn resolve(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
    let number = match &port.target_port {
        None | Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            let sidecars = spec.init_containers.iter().flatten();
            let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
            let mut offered = spec
                .containers
                .iter()
                .chain(sidecars)
                .flat_map(|container| container.ports.iter().flatten());
            let matching = offered.find(|offer| {
                offer.name.as_ref() == Some(name) && offer.protocol.as_deref().unwrap_or("TCP") == protocol
            });
            matching?.container_port
        }
    };
    Some(Port {
        name: port.name.clone().unwrap_or_default(),
        number,
        protocol,
        app: port.app_protocol.clone(),
    })
}
