//! Topology spread: no domain gets ahead of the others by more than the skew. Pure.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use kube::ResourceExt;
use kube::core::{Expression, Selector, SelectorExt};

use super::cluster::{Cluster, Place};
use super::{selectors, taints};

/// Why a node is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its domain would be too far ahead.
    Skew,
    /// It belongs to no domain.
    NoLabel,
}

/// One constraint, counted.
struct Counted<'a> {
    constraint: &'a TopologySpreadConstraint,
    by_domain: HashMap<&'a str, i64>,
    own: i64,
}

fn constraints(pod: &Pod, hard: bool) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let all = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.topology_spread_constraints.as_ref());
    all.into_iter()
        .flatten()
        .filter(move |constraint| (constraint.when_unsatisfiable == "DoNotSchedule") == hard)
}

fn selector(pod: &Pod, constraint: &TopologySpreadConstraint) -> Option<Selector> {
    let mut selector = Selector::try_from(constraint.label_selector.clone()?).ok()?;
    for key in constraint.match_label_keys.iter().flatten() {
        if let Some(value) = pod.labels().get(key) {
            selector.extend([Expression::Equal(key.clone(), value.clone())]);
        }
    }
    Some(selector)
}

fn count<'a>(cluster: &'a Cluster, pod: &'a Pod, hard: bool) -> Vec<Counted<'a>> {
    let keys: Vec<&str> = constraints(pod, hard)
        .map(|constraint| constraint.topology_key.as_str())
        .collect();
    let namespace = pod.namespace();
    constraints(pod, hard)
        .map(|constraint| {
            let selector = selector(pod, constraint);
            let matches = |other: &Pod| {
                selector
                    .as_ref()
                    .is_some_and(|selector| selector.matches(other.labels()))
            };
            let mut by_domain = HashMap::new();
            for place in cluster
                .places
                .iter()
                .filter(|place| counts(place, pod, constraint, &keys))
            {
                let Some(domain) = place.label(&constraint.topology_key) else {
                    continue;
                };
                let here = place.pods.iter().filter(|other| {
                    other.namespace() == namespace && other.metadata.deletion_timestamp.is_none() && matches(other)
                });
                *by_domain.entry(domain).or_default() += i64::try_from(here.count()).unwrap_or(i64::MAX);
            }
            Counted {
                constraint,
                by_domain,
                own: i64::from(matches(pod)),
            }
        })
        .collect()
}

/// Whether a node's domain is among those compared.
fn counts(place: &Place, pod: &Pod, constraint: &TopologySpreadConstraint, keys: &[&str]) -> bool {
    let honors = |policy: Option<&String>, default: bool| policy.map_or(default, |policy| policy == "Honor");
    keys.iter().all(|key| place.label(key).is_some())
        && (!honors(constraint.node_affinity_policy.as_ref(), true) || selectors::allows(pod, &place.node))
        && (!honors(constraint.node_taints_policy.as_ref(), false) || !taints::keeps_off(pod, &place.node))
}

/// The hard constraints of a pod, counted once for all nodes.
pub struct Hard<'a>(Vec<Counted<'a>>);

impl<'a> Hard<'a> {
    /// Counts.
    pub fn new(cluster: &'a Cluster, pod: &'a Pod) -> Self {
        Self(count(cluster, pod, true))
    }

    /// Whether the pod may go to a node.
    pub fn check(&self, place: &Place) -> Result<(), Rejection> {
        for counted in &self.0 {
            let domain = place
                .label(&counted.constraint.topology_key)
                .ok_or(Rejection::NoLabel)?;
            let domains = i64::try_from(counted.by_domain.len()).unwrap_or(i64::MAX);
            let enough = counted
                .constraint
                .min_domains
                .is_none_or(|least| domains >= i64::from(least));
            let lowest = if enough {
                counted.by_domain.values().min().copied().unwrap_or_default()
            } else {
                0
            };
            let here = counted.by_domain.get(domain).copied().unwrap_or_default();
            if here + counted.own - lowest > i64::from(counted.constraint.max_skew) {
                return Err(Rejection::Skew);
            }
        }
        Ok(())
    }
}

/// How crowded each node's domains are with pods of the same sort: the fewer the better.
///
/// A pod without constraints is spread from others of the same controller, over nodes and zones.
pub fn crowding(cluster: &Cluster, pod: &Pod) -> Vec<i64> {
    let soft = count(cluster, pod, false);
    if !soft.is_empty() {
        let at = |place: &Place| {
            let each = soft.iter().map(|counted| {
                let domain = place.label(&counted.constraint.topology_key);
                domain
                    .and_then(|domain| counted.by_domain.get(domain))
                    .copied()
                    .unwrap_or_default()
            });
            each.sum()
        };
        return cluster.places.iter().map(at).collect();
    }
    let owner = |pod: &Pod| {
        let owners = pod
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true));
        owners.map(|owner| owner.uid.clone())
    };
    let Some(own) = owner(pod) else {
        return vec![0; cluster.places.len()];
    };
    let on = |place: &Place| {
        let same = place.pods.iter().filter(|other| owner(other).as_ref() == Some(&own));
        i64::try_from(same.count()).unwrap_or(i64::MAX)
    };
    let mut zones: BTreeMap<Option<&str>, i64> = BTreeMap::new();
    for place in &cluster.places {
        *zones.entry(place.label("topology.kubernetes.io/zone")).or_default() += on(place);
    }
    let at = |place: &Place| {
        on(place)
            + zones
                .get(&place.label("topology.kubernetes.io/zone"))
                .copied()
                .unwrap_or(0)
    };
    cluster.places.iter().map(at).collect()
}
