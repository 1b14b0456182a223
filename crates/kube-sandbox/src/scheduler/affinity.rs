//! Affinity and anti-affinity between pods. Pure.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};
use kube::ResourceExt;
use kube::core::{Expression, Selector, SelectorExt};

use super::cluster::{Cluster, Place};

/// Why a node is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No pod it wants to be near is there.
    Affinity,
    /// A pod it wants to avoid is there.
    AntiAffinity,
    /// A pod there wants to avoid it.
    Existing,
}

/// A term with its selectors read.
struct Term<'a> {
    rule: &'a PodAffinityTerm,
    selector: Option<Selector>,
    namespaces: Option<Selector>,
    home: String,
}

impl<'a> Term<'a> {
    fn new(of: &'a Pod, term: &'a PodAffinityTerm) -> Self {
        let read = |selector: &Option<_>| selector.clone().and_then(|selector| Selector::try_from(selector).ok());
        let mut selector: Option<Selector> = read(&term.label_selector);
        if let Some(selector) = &mut selector {
            let label = |key: &String| Some((key.clone(), of.labels().get(key)?.clone()));
            let same = term.match_label_keys.iter().flatten().filter_map(label);
            selector.extend(same.map(|(key, value)| Expression::In(key, [value].into())));
            let other = term.mismatch_label_keys.iter().flatten().filter_map(label);
            selector.extend(other.map(|(key, value)| Expression::NotIn(key, [value].into())));
        }
        Self {
            rule: term,
            selector,
            namespaces: read(&term.namespace_selector),
            home: of.namespace().unwrap_or_default(),
        }
    }

    fn matches(&self, cluster: &Cluster, pod: &Pod) -> bool {
        let namespace = pod.namespace().unwrap_or_default();
        let listed = self.rule.namespaces.as_deref().unwrap_or_default();
        let by_label = self.namespaces.as_ref().is_some_and(|selector| {
            selector.matches(
                cluster
                    .namespaces
                    .get(&namespace)
                    .unwrap_or(&std::collections::BTreeMap::new()),
            )
        });
        let home = listed.is_empty() && self.namespaces.is_none() && namespace == self.home;
        (home || listed.contains(&namespace) || by_label)
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(pod.labels()))
    }

    /// The domains in which a matching pod lives.
    fn domains<'c>(&self, cluster: &'c Cluster) -> HashSet<&'c str> {
        let with = cluster
            .places
            .iter()
            .filter(|place| place.pods.iter().any(|pod| self.matches(cluster, pod)));
        with.filter_map(|place| place.label(&self.rule.topology_key)).collect()
    }
}

fn required(pod: &Pod, anti: bool) -> Vec<Term<'_>> {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let terms = affinity.and_then(|affinity| {
        if anti {
            affinity
                .pod_anti_affinity
                .as_ref()?
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        } else {
            affinity
                .pod_affinity
                .as_ref()?
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        }
    });
    terms.into_iter().flatten().map(|term| Term::new(pod, term)).collect()
}

/// The required rules around a pod, worked out once for all nodes.
pub struct Rules<'a> {
    near: Vec<(&'a str, HashSet<&'a str>)>,
    first_of_its_kind: bool,
    anti_affinity: Vec<(&'a str, HashSet<&'a str>)>,
    /// Domains (key, value) from which pods there keep it away.
    shunned: HashSet<(&'a str, &'a str)>,
}

impl<'a> Rules<'a> {
    /// Works them out.
    pub fn new(cluster: &'a Cluster, pod: &'a Pod) -> Self {
        let (near, anti_affinity) = (required(pod, false), required(pod, true));
        let first_of_its_kind = !near.is_empty()
            && near
                .iter()
                .all(|term| term.domains(cluster).is_empty() && term.matches(cluster, pod));
        let mut shunned = HashSet::new();
        for place in &cluster.places {
            for other in &place.pods {
                for term in required(other, true).iter().filter(|term| term.matches(cluster, pod)) {
                    let key = term.rule.topology_key.as_str();
                    shunned.extend(place.label(key).map(|value| (key, value)));
                }
            }
        }
        let resolve = |terms: &[Term<'a>]| {
            terms
                .iter()
                .map(|term| (term.rule.topology_key.as_str(), term.domains(cluster)))
                .collect()
        };
        Self {
            near: resolve(&near),
            first_of_its_kind,
            anti_affinity: resolve(&anti_affinity),
            shunned,
        }
    }

    /// Whether the pod may go to a node.
    pub fn check(&self, place: &Place) -> Result<(), Rejection> {
        let together = self.near.iter().all(|(key, domains)| {
            place
                .label(key)
                .is_some_and(|value| self.first_of_its_kind || domains.contains(value))
        });
        if !together {
            return Err(Rejection::Affinity);
        }
        let apart = self
            .anti_affinity
            .iter()
            .all(|(key, domains)| place.label(key).is_none_or(|value| !domains.contains(value)));
        if !apart {
            return Err(Rejection::AntiAffinity);
        }
        if self.shunned.iter().any(|(key, value)| place.label(key) == Some(*value)) {
            return Err(Rejection::Existing);
        }
        Ok(())
    }
}

/// The sum of preferences each node meets; avoidance counts against it.
pub fn preferences(cluster: &Cluster, pod: &Pod) -> Vec<i64> {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let near = affinity
        .and_then(|affinity| affinity.pod_affinity.as_ref())
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let anti_affinity = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let mut scores = vec![0; cluster.places.len()];
    let weighted = near.into_iter().flatten().map(|term| (1, term));
    let weighted = weighted.chain(anti_affinity.into_iter().flatten().map(|term| (-1, term)));
    for (sign, preferred) in weighted {
        let term = Term::new(pod, &preferred.pod_affinity_term);
        let mut by_domain = std::collections::HashMap::<&str, i64>::new();
        for place in &cluster.places {
            let here = place.pods.iter().filter(|other| term.matches(cluster, other)).count();
            if let Some(value) = place.label(&term.rule.topology_key) {
                *by_domain.entry(value).or_default() += i64::try_from(here).unwrap_or(i64::MAX);
            }
        }
        for (place, score) in cluster.places.iter().zip(&mut scores) {
            let here = place
                .label(&term.rule.topology_key)
                .and_then(|value| by_domain.get(value));
            *score += sign * i64::from(preferred.weight) * here.copied().unwrap_or_default();
        }
    }
    scores
}
