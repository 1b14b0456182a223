//! `EndpointSlices`: at most a hundred endpoints each, changed as little as possible. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::members::{Member, Port, is_headless, takes_unready};
use super::subsets::{HEADLESS, target};
use crate::controllers::{owners, pods};

/// The label by which a service finds its slices.
pub const SERVICE: &str = "kubernetes.io/service-name";
/// The label that names the controller that manages a slice.
pub const MANAGED: &str = "endpointslice.kubernetes.io/managed-by";
/// Ours.
pub const MANAGER: &str = "endpointslice-controller.k8s.io";

const MOST: usize = 100;

/// What is to be written.
#[derive(Debug, Default)]
pub struct Plan {
    /// New ones.
    pub create: Vec<EndpointSlice>,
    /// Changed ones.
    pub update: Vec<EndpointSlice>,
    /// Superfluous ones.
    pub delete: Vec<Arc<EndpointSlice>>,
}

/// Compares the slices with the members.
pub fn plan(
    service: &Service,
    members: &[Member],
    existing: &[Arc<EndpointSlice>],
    node: &dyn Fn(&str) -> Option<Arc<Node>>,
) -> Plan {
    let mut groups: BTreeMap<Vec<Port>, VecDeque<Endpoint>> = BTreeMap::new();
    for member in members {
        groups
            .entry(member.ports.clone())
            .or_default()
            .push_back(endpoint(service, member, node));
    }
    if groups.is_empty() {
        // A service without members still has a slice, an empty one.
        groups.insert(Vec::new(), VecDeque::new());
    }
    let mut plan = Plan::default();
    let mut spare: Vec<Arc<EndpointSlice>> = existing.to_vec();
    spare.sort_by_key(|slice| slice.name_any());
    for (ports, endpoints) in groups {
        fill(service, &ports, endpoints, &mut spare, &mut plan);
    }
    plan.delete = spare;
    plan
}

/// Puts one group's endpoints into the slices that have its ports, then into new ones.
fn fill(
    service: &Service,
    ports: &[Port],
    mut endpoints: VecDeque<Endpoint>,
    spare: &mut Vec<Arc<EndpointSlice>>,
    plan: &mut Plan,
) {
    let desired: Vec<EndpointPort> = ports.iter().map(port).collect();
    let (mut fitting, others): (Vec<_>, Vec<_>) = spare
        .drain(..)
        .partition(|slice| slice.ports.clone().unwrap_or_default() == desired);
    *spare = others;
    let address = |endpoint: &Endpoint| endpoint.addresses.first().cloned();
    let mut contents: Vec<Vec<Endpoint>> = fitting
        .iter()
        .map(|slice| {
            let known: Vec<_> = slice.endpoints.iter().map(address).collect();
            let (stay, rest) = endpoints
                .drain(..)
                .partition(|endpoint| known.contains(&address(endpoint)));
            endpoints = rest;
            let stay: VecDeque<Endpoint> = stay;
            stay.into()
        })
        .collect();
    for content in &mut contents {
        while content.len() < MOST
            && let Some(endpoint) = endpoints.pop_front()
        {
            content.push(endpoint);
        }
    }
    // One slice stays even if it is empty and nothing else is left.
    let needed = contents
        .iter()
        .filter(|content| !content.is_empty())
        .count()
        .max(usize::from(endpoints.is_empty()));
    let mut kept = 0;
    for (slice, content) in fitting.drain(..).zip(contents) {
        if content.is_empty() && kept >= needed {
            plan.delete.push(slice);
            continue;
        }
        kept += 1;
        let mut right = (*slice).clone();
        dress(service, &mut right);
        right.endpoints = content;
        if right != *slice {
            plan.update.push(right);
        }
    }
    spare.append(&mut plan.delete);
    while !endpoints.is_empty() || kept == 0 {
        kept += 1;
        let mut fresh = EndpointSlice {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", service.name_any())),
                namespace: service.namespace(),
                ..ObjectMeta::default()
            },
            address_type: "IPv4".into(),
            ports: (!desired.is_empty()).then(|| desired.clone()),
            endpoints: endpoints.drain(..endpoints.len().min(MOST)).collect(),
        };
        dress(service, &mut fresh);
        plan.create.push(fresh);
    }
}

/// Labels and owner.
fn dress(service: &Service, slice: &mut EndpointSlice) {
    let mut labels = service.labels().clone();
    labels.insert(SERVICE.into(), service.name_any());
    labels.insert(MANAGED.into(), MANAGER.into());
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    }
    slice.metadata.labels = Some(labels);
    slice.metadata.owner_references = Some(vec![owners::controller_reference(service)]);
}

fn port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        port: Some(port.number),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app.clone(),
    }
}

fn endpoint(service: &Service, member: &Member, node: &dyn Fn(&str) -> Option<Arc<Node>>) -> Endpoint {
    let serving = member.serving || takes_unready(service);
    let name = pods::node_name(&member.pod);
    let zone = name
        .and_then(node)
        .and_then(|node| node.labels().get("topology.kubernetes.io/zone").cloned());
    Endpoint {
        addresses: vec![member.ip.clone()],
        conditions: Some(EndpointConditions {
            ready: Some(takes_unready(service) || (serving && !member.terminating)),
            serving: Some(serving),
            terminating: Some(member.terminating),
        }),
        hostname: member.hostname.clone(),
        node_name: name.map(Into::into),
        target_ref: Some(target(member)),
        zone,
        ..Endpoint::default()
    }
}
