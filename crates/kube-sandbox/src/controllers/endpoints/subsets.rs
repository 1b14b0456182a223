//! Endpoints, the old form: addresses grouped by the ports they share. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::members::{Member, Port, is_headless, takes_unready};
use crate::controllers::pods;

/// The label of services without an address.
pub const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED: &str = "endpoints.kubernetes.io/managed-by";

/// The object that a pod stands for in endpoints.
pub fn target(member: &Member) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: member.pod.namespace(),
        name: Some(member.pod.name_any()),
        uid: member.pod.uid(),
        ..ObjectReference::default()
    }
}

/// The Endpoints of a service.
pub fn endpoints(service: &Service, members: &[Member]) -> Endpoints {
    let mut labels = service.labels().clone();
    labels.insert(MANAGED.into(), "endpoint-controller".into());
    if is_headless(service) {
        labels.insert(HEADLESS.into(), String::new());
    } else {
        labels.remove(HEADLESS);
    }
    let mut groups: BTreeMap<&[Port], (Vec<EndpointAddress>, Vec<EndpointAddress>)> = BTreeMap::new();
    let takes_unready = takes_unready(service);
    for member in members {
        if member.terminating && !takes_unready {
            continue;
        }
        let address = EndpointAddress {
            ip: member.ip.clone(),
            hostname: member.hostname.clone(),
            node_name: pods::node_name(&member.pod).map(Into::into),
            target_ref: Some(target(member)),
        };
        let (ready, unready) = groups.entry(&member.ports).or_default();
        if member.serving || takes_unready {
            ready.push(address);
        } else {
            unready.push(address);
        }
    }
    let filled = |list: Vec<_>| (!list.is_empty()).then_some(list);
    let subsets: Vec<EndpointSubset> = groups
        .into_iter()
        .map(|(ports, (ready, unready))| EndpointSubset {
            addresses: filled(ready),
            not_ready_addresses: filled(unready),
            ports: (!ports.is_empty()).then(|| ports.iter().map(port).collect()),
        })
        .collect();
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        subsets: (!subsets.is_empty()).then_some(subsets),
    }
}

fn port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()).filter(|name| !name.is_empty()),
        port: port.number,
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app.clone(),
    }
}
