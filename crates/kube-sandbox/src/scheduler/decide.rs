//! Where a pod goes, or why nowhere: filters in the real scheduler's order, then scores. Pure.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use kube::ResourceExt;

use super::cluster::{Cluster, Place};
use super::reasons::{Reason, unschedulable};
use super::resources::{self, Amounts};
use super::volumes::Claims;
use super::{affinity, selectors, spread, taints, volumes};

/// The outcome for one pod.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// A node was found; these claims get it as an annotation first.
    Bind {
        /// The node's name.
        node: String,
        /// Names of claims that wait for their first consumer.
        claims: Vec<String>,
    },
    /// The pod keeps its reserved node until its volumes are bound there.
    Wait,
    /// Nothing fits.
    Unschedulable {
        /// The whole sentence.
        message: String,
    },
}

/// Decides. With `reserved` only that node is considered: its volumes are being provisioned.
pub fn decide(cluster: &Cluster, pod: &Pod, reserved: Option<&str>) -> Decision {
    if cluster.places.is_empty() {
        return Decision::Unschedulable {
            message: "no nodes available to schedule pods".into(),
        };
    }
    // The real scheduler runs no filter again between reserving a node and binding the volumes. Giving up the node in
    // between lets another pod take its place in the topology spread, and the volume cannot follow.
    if reserved.is_some_and(|node| volumes::are_being_bound(cluster, pod, node)) {
        return Decision::Wait;
    }
    let claims = match Claims::of(cluster, pod) {
        Ok(claims) => claims,
        Err(message) => {
            return Decision::Unschedulable {
                message: super::reasons::nowhere(cluster.places.len(), &message),
            };
        }
    };
    let requested = resources::of_pod(pod);
    let filters = Filters {
        cluster,
        pod,
        requested: &requested,
        claims: &claims,
        spread: spread::Hard::new(cluster, pod),
        rules: affinity::Rules::new(cluster, pod),
    };
    let reasons_by_node: Vec<Vec<Reason>> = cluster.places.iter().map(|place| filters.check(place)).collect();
    let fitting: Vec<usize> = (0..reasons_by_node.len())
        .filter(|at| reasons_by_node[*at].is_empty())
        .filter(|at| reserved.is_none_or(|node| cluster.places[*at].node.name_any() == node))
        .collect();
    match best(cluster, pod, &requested, &fitting) {
        Some(at) => Decision::Bind {
            node: cluster.places[at].node.name_any(),
            claims: claims.waiting.iter().map(|claim| claim.name_any()).collect(),
        },
        None => Decision::Unschedulable {
            message: unschedulable(&reasons_by_node, never_preempts(pod)),
        },
    }
}

fn never_preempts(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never")
}

struct Filters<'a> {
    cluster: &'a Cluster,
    pod: &'a Pod,
    requested: &'a Amounts,
    claims: &'a Claims,
    spread: spread::Hard<'a>,
    rules: affinity::Rules<'a>,
}

impl Filters<'_> {
    /// Empty when the node fits; else the reasons of the first filter that rejects it.
    fn check(&self, place: &Place) -> Vec<Reason> {
        if self.cordoned(place) {
            return vec![Reason::Unschedulable];
        }
        if taints::keeps_off(self.pod, &place.node) {
            return vec![Reason::Taint];
        }
        if !selectors::allows(self.pod, &place.node) {
            return vec![Reason::NodeAffinity];
        }
        if self.ports_taken(place) {
            return vec![Reason::Ports];
        }
        let lacks = resources::lacks(self.requested, &place.has, &place.used, place.pods.len());
        if !lacks.is_empty() {
            return lacks.into_iter().map(Reason::Lack).collect();
        }
        if let Err(rejection) = self.claims.check(self.cluster, self.pod, place) {
            return vec![match rejection {
                volumes::Rejection::NodeAffinity => Reason::VolumeNodeAffinity,
                volumes::Rejection::Zone => Reason::VolumeZone,
                volumes::Rejection::NoVolume => Reason::NoVolume,
                volumes::Rejection::NoMatch => Reason::NoVolumeToBind,
                volumes::Rejection::InUse => Reason::ClaimInUse,
            }];
        }
        if let Err(rejection) = self.spread.check(place) {
            return vec![match rejection {
                spread::Rejection::Skew => Reason::Spread,
                spread::Rejection::NoLabel => Reason::SpreadLabel,
            }];
        }
        if let Err(rejection) = self.rules.check(place) {
            return vec![match rejection {
                affinity::Rejection::Affinity => Reason::PodAffinity,
                affinity::Rejection::AntiAffinity => Reason::PodAntiAffinity,
                affinity::Rejection::Existing => Reason::ExistingAntiAffinity,
            }];
        }
        Vec::new()
    }

    fn cordoned(&self, place: &Place) -> bool {
        let cordoned = place.node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let taint = k8s_openapi::api::core::v1::Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..k8s_openapi::api::core::v1::Taint::default()
        };
        let bears = |toleration: &Toleration| taints::tolerates(toleration, &taint);
        cordoned && !taints::tolerations(self.pod).iter().any(bears)
    }

    fn ports_taken(&self, place: &Place) -> bool {
        let requested = host_ports(self.pod);
        !requested.is_empty()
            && place.pods.iter().flat_map(|pod| host_ports(pod)).any(|taken| {
                requested.iter().any(|port| {
                    let any = |address: &str| address.is_empty() || address == "0.0.0.0";
                    port.1 == taken.1 && port.2 == taken.2 && (port.0 == taken.0 || any(&port.0) || any(&taken.0))
                })
            })
    }
}

/// Address, protocol, port.
fn host_ports(pod: &Pod) -> Vec<(String, String, i32)> {
    let containers = pod
        .spec
        .as_ref()
        .map(|spec| spec.containers.as_slice())
        .unwrap_or_default();
    let ports = containers.iter().flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
            Some((port.host_ip.clone().unwrap_or_default(), protocol, number))
        })
        .collect()
}

/// The node with the highest score; of equals the one with the fewest pods, then the first by name.
fn best(cluster: &Cluster, pod: &Pod, requested: &Amounts, fitting: &[usize]) -> Option<usize> {
    if fitting.len() < 2 {
        return fitting.first().copied();
    }
    let places = || fitting.iter().map(|at| &cluster.places[*at]);
    let crowding = spread::crowding(cluster, pod);
    let company = affinity::preferences(cluster, pod);
    let all = [
        (
            3,
            normalized(places().map(|place| -taints::discourages(pod, &place.node))),
        ),
        (
            2,
            normalized(places().map(|place| selectors::preference(pod, &place.node))),
        ),
        (2, normalized(fitting.iter().map(|at| -crowding[*at]))),
        (2, normalized(fitting.iter().map(|at| company[*at]))),
        (
            1,
            places()
                .map(|place| resources::freedom(requested, &place.has, &place.used))
                .collect(),
        ),
    ];
    let score = |index: usize| -> i64 { all.iter().map(|(weight, scores)| weight * scores[index]).sum() };
    (0..fitting.len())
        .max_by_key(|index| {
            let place = &cluster.places[fitting[*index]];
            (
                score(*index),
                std::cmp::Reverse(place.pods.len()),
                std::cmp::Reverse(*index),
            )
        })
        .map(|index| fitting[index])
}

/// Stretched to 0..=100; equal values are all 0.
fn normalized(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let values: Vec<i64> = values.collect();
    let (low, high) = (
        values.iter().min().copied().unwrap_or(0),
        values.iter().max().copied().unwrap_or(0),
    );
    let range = high.saturating_sub(low);
    let stretch = |value: &i64| {
        if range == 0 {
            0
        } else {
            value.saturating_sub(low).saturating_mul(100) / range
        }
    };
    values.iter().map(stretch).collect()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
