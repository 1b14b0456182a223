//! Where members may run.

use candor_api::ValkeyCluster;
use candor_api::valkey::spec::{Scheduling, Spread, SpreadMode, SpreadRule};
use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodAntiAffinity,
    PodSpec, Toleration, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::labels::{self, NODE};
use super::{Problem, preserved_fields};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Writes the scheduling constraints into a pod spec.
pub(super) fn apply(pod: &mut PodSpec, cluster: &ValkeyCluster, member: MemberRef) -> Result<(), Problem> {
    let scheduling = cluster.spec.scheduling.clone().unwrap_or_default();
    let tolerations: Vec<Toleration> = list("spec.scheduling.tolerations", &scheduling.tolerations)?;
    pod.tolerations = (!tolerations.is_empty()).then_some(tolerations);
    pod.node_selector = (!scheduling.node_selector.is_empty()).then(|| scheduling.node_selector.clone());
    pod.priority_class_name.clone_from(&scheduling.priority_class_name);
    pod.affinity = affinity(&scheduling, cluster, member)?;
    pod.topology_spread_constraints = constraints(&scheduling, cluster, member)?;
    Ok(())
}

fn list<T: serde::de::DeserializeOwned + serde::Serialize>(field: &str, values: &[Value]) -> Result<Vec<T>, Problem> {
    let entries = values.iter().enumerate();
    entries
        .map(|(index, value)| preserved_fields::read(&format!("{field}[{index}]"), value))
        .collect()
}

fn mode(rule: Option<&SpreadRule>, absent: SpreadMode) -> SpreadMode {
    rule.and_then(|rule| rule.mode).unwrap_or(absent)
}

fn over_nodes(scheduling: &Scheduling) -> Spread {
    scheduling.node.clone().unwrap_or_default().spread.unwrap_or_default()
}

fn over_zones(scheduling: &Scheduling) -> Spread {
    scheduling.zone.clone().unwrap_or_default().spread.unwrap_or_default()
}

/// The affinity of the spec, extended by the operator: it separates members of the same shard and pins the zones.
fn affinity(scheduling: &Scheduling, cluster: &ValkeyCluster, member: MemberRef) -> Result<Option<Affinity>, Problem> {
    let written = scheduling.affinity.as_ref();
    let mut affinity: Affinity = match written {
        Some(value) => preserved_fields::read("spec.scheduling.affinity", value)?,
        None => Affinity::default(),
    };
    let apart = PodAffinityTerm {
        label_selector: Some(labels::shard_selector(cluster, member.shard)),
        topology_key: HOST.to_owned(),
        ..PodAffinityTerm::default()
    };
    match mode(over_nodes(scheduling).shard.as_ref(), SpreadMode::Preferred) {
        SpreadMode::Disabled => {}
        SpreadMode::Preferred => preferred(affinity.pod_anti_affinity.get_or_insert_default(), apart),
        SpreadMode::Required => {
            let anti = affinity.pod_anti_affinity.get_or_insert_default();
            anti.required_during_scheduling_ignored_during_execution
                .get_or_insert_default()
                .push(apart);
        }
    }
    let zones = scheduling
        .zone
        .as_ref()
        .and_then(|zone| zone.pinning.as_ref())
        .map(|pinning| &pinning.zones);
    if let Some(zones) = zones.filter(|zones| !zones.is_empty()) {
        pin(affinity.node_affinity.get_or_insert_default(), zones);
    }
    Ok((affinity != Affinity::default()).then_some(affinity))
}

fn preferred(anti: &mut PodAntiAffinity, term: PodAffinityTerm) {
    let scheduling = anti
        .preferred_during_scheduling_ignored_during_execution
        .get_or_insert_default();
    scheduling.push(WeightedPodAffinityTerm {
        weight: 100,
        pod_affinity_term: term,
    });
}

/// The terms of a node selector are alternatives, so the zones are added to each of them.
fn pin(nodes: &mut NodeAffinity, zones: &[String]) {
    let requirement = NodeSelectorRequirement {
        key: ZONE.to_owned(),
        operator: "In".to_owned(),
        values: Some(zones.to_vec()),
    };
    let selector = nodes
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(|| NodeSelector {
            node_selector_terms: Vec::new(),
        });
    if selector.node_selector_terms.is_empty() {
        selector.node_selector_terms.push(NodeSelectorTerm::default());
    }
    for term in &mut selector.node_selector_terms {
        term.match_expressions.get_or_insert_default().push(requirement.clone());
    }
}

/// The topology spread constraints of the spec and of the operator.
fn constraints(
    scheduling: &Scheduling,
    cluster: &ValkeyCluster,
    member: MemberRef,
) -> Result<Option<Vec<TopologySpreadConstraint>>, Problem> {
    let mut all: Vec<TopologySpreadConstraint> = list(
        "spec.scheduling.topologySpreadConstraints",
        &scheduling.topology_spread_constraints,
    )?;
    let whole = labels::matching(labels::cluster_selector(cluster));
    // Roles change, but member indexes do not: member 0 of every shard is its initial primary.
    let mut firsts = labels::cluster_selector(cluster);
    firsts.insert(NODE.to_owned(), "0".to_owned());
    let firsts = labels::matching(firsts);
    for (key, spread) in [(HOST, over_nodes(scheduling)), (ZONE, over_zones(scheduling))] {
        if key == ZONE {
            let shard = labels::shard_selector(cluster, member.shard);
            all.extend(constraint(
                key,
                mode(spread.shard.as_ref(), SpreadMode::Preferred),
                shard,
            ));
        }
        if member.node == 0 {
            all.extend(constraint(
                key,
                mode(spread.primaries.as_ref(), SpreadMode::Disabled),
                firsts.clone(),
            ));
        }
        all.extend(constraint(
            key,
            mode(spread.pods.as_ref(), SpreadMode::Disabled),
            whole.clone(),
        ));
    }
    Ok((!all.is_empty()).then_some(all))
}

fn constraint(key: &str, mode: SpreadMode, selector: LabelSelector) -> Option<TopologySpreadConstraint> {
    let otherwise = match mode {
        SpreadMode::Disabled => return None,
        SpreadMode::Preferred => "ScheduleAnyway",
        SpreadMode::Required => "DoNotSchedule",
    };
    Some(TopologySpreadConstraint {
        label_selector: Some(selector),
        max_skew: 1,
        topology_key: key.to_owned(),
        when_unsatisfiable: otherwise.to_owned(),
        ..TopologySpreadConstraint::default()
    })
}
