//! The next step of a Deployment: one kind of write, and the status that goes with it. Pure.
//!
//! Every write to a `ReplicaSet` comes back as a change and leads here again, so a step does not plan ahead.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;

use super::rollout::{
    self, DESIRED, HASH_LABEL, MAX, REVISION, REVISION_HISTORY, available, desired_replicas, number, revision, size,
};
use super::status::{self, condition, counted, judge_progress, reason};
use crate::controllers::hash::template_hash;
use crate::controllers::owners;

/// A write to a `ReplicaSet`.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Make the new set.
    Create(Box<ReplicaSet>),
    /// Change size or annotations; the event to record, if its size changes.
    Update(Box<ReplicaSet>, Option<String>),
    /// An old set beyond the history limit.
    Delete(Arc<ReplicaSet>),
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// In this order.
    pub writes: Vec<Write>,
    /// To be written afterwards, if it differs.
    pub status: DeploymentStatus,
    /// The revision the deployment should carry.
    pub revision: Option<String>,
}

/// The deployment and its sets.
struct View<'a> {
    deployment: &'a Deployment,
    all: &'a [Arc<ReplicaSet>],
    new: Option<Arc<ReplicaSet>>,
    old: Vec<Arc<ReplicaSet>>,
    now: &'a Time,
}

/// Annotations that belong to the deployment alone.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// The longest revision history kept, in characters.
const LONGEST_HISTORY: usize = 2000;

/// Decides. `others_run` says whether pods of other templates still exist (Recreate waits for them).
pub fn decide(deployment: &Deployment, sets: &[Arc<ReplicaSet>], others_run: bool, now: &Time) -> Decision {
    let new = rollout::find_new(deployment, sets).cloned();
    let old = sets
        .iter()
        .filter(|set| new.as_ref().is_none_or(|new| new.uid() != set.uid()))
        .cloned()
        .collect();
    let mut deployment = deployment.clone();
    if deployment.metadata.deletion_timestamp.is_none() {
        let mut status = deployment.status.take().unwrap_or_default();
        status::mark_pause(&deployment, &mut status, now);
        deployment.status = Some(status);
    }
    let view = View {
        deployment: &deployment,
        all: sets,
        new,
        old,
        now,
    };
    if deployment.metadata.deletion_timestamp.is_some() {
        return view.counts_only(Vec::new());
    }
    if let Some(update) = view.annotate_new() {
        return view.counts_only(vec![update]);
    }
    if deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true) {
        let mut writes = view.scale();
        if writes.is_empty() {
            writes = view.clean_up();
        }
        return view.counts_only(writes);
    }
    if view.was_scaled() {
        return view.counts_only(view.scale());
    }
    if rollout::recreates(&deployment) {
        view.recreate(others_run)
    } else {
        view.roll()
    }
}

impl View<'_> {
    fn counts_only(&self, writes: Vec<Write>) -> Decision {
        let status = counted(self.deployment, self.all, self.new.as_deref(), self.now);
        self.decision(writes, status)
    }

    fn judged(&self, writes: Vec<Write>) -> Decision {
        let mut status = counted(self.deployment, self.all, self.new.as_deref(), self.now);
        if let Some(new) = &self.new
            && status::deadline(self.deployment).is_some()
            && status::find(&status, "Progressing").is_none()
        {
            let message = format!("Found new replica set \"{}\"", new.name_any());
            status::set(
                &mut status,
                condition("Progressing", "True", reason::FOUND, message, self.now),
            );
        }
        judge_progress(self.deployment, &mut status, self.all, self.new.as_deref(), self.now);
        self.decision(writes, status)
    }

    fn decision(&self, writes: Vec<Write>, status: DeploymentStatus) -> Decision {
        let revision = self
            .new
            .as_ref()
            .and_then(|new| new.annotations().get(REVISION))
            .cloned();
        Decision {
            writes,
            status,
            revision,
        }
    }

    fn active(&self) -> Vec<Arc<ReplicaSet>> {
        self.all.iter().filter(|set| size(set) > 0).cloned().collect()
    }

    fn total(&self) -> i32 {
        self.all.iter().map(|set| size(set)).sum()
    }

    fn next_revision(&self) -> i64 {
        self.old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1
    }

    /// The new set carries the deployment's annotations and the highest revision.
    fn annotate_new(&self) -> Option<Write> {
        let new = self.new.as_ref()?;
        let mut updated = (**new).clone();
        let annotations = updated.metadata.annotations.get_or_insert_default();
        let mut changed = copy_annotations(self.deployment, annotations);
        let (known, next) = (revision(new), self.next_revision());
        if known < next {
            if known > 0 {
                remember_revision(annotations, known);
            }
            annotations.insert(REVISION.into(), next.to_string());
            changed = true;
        }
        let min_ready = self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let spec = updated.spec.get_or_insert_default();
        if spec.min_ready_seconds.unwrap_or_default() != min_ready.unwrap_or_default() {
            spec.min_ready_seconds = min_ready;
            changed = true;
        }
        changed.then(|| Write::Update(Box::new(updated), None))
    }

    fn create_new(&self) -> Decision {
        let d = self.deployment;
        let spec = d.spec.clone().unwrap_or_default();
        let mut status = counted(d, self.all, None, self.now);
        let hash = template_hash(&spec.template, status.collision_count);
        let mut template = spec.template;
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH_LABEL.into(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector;
        selector
            .match_labels
            .get_or_insert_default()
            .insert(HASH_LABEL.into(), hash.clone());
        let size = rollout::new_set_size(d, self.total(), 0);
        let mut annotations = BTreeMap::new();
        copy_annotations(d, &mut annotations);
        annotations.insert(REVISION.into(), self.next_revision().to_string());
        annotate_size(d, &mut annotations);
        let name = set_name(&d.name_any(), &hash);
        let set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: d.namespace(),
                labels: Some(labels),
                annotations: Some(annotations),
                owner_references: Some(vec![owners::controller_reference(d)]),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(size),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        };
        if status::deadline(d).is_some() {
            let message = format!("Created new replica set \"{name}\"");
            status::set(
                &mut status,
                condition("Progressing", "True", reason::CREATED, message, self.now),
            );
        }
        Decision {
            writes: vec![Write::Create(Box::new(set))],
            status,
            revision: Some(self.next_revision().to_string()),
        }
    }

    fn resize(&self, set: &ReplicaSet, to: i32) -> Option<Write> {
        let from = size(set);
        let mut updated = set.clone();
        updated.spec.get_or_insert_default().replicas = Some(to);
        let changed = annotate_size(self.deployment, updated.metadata.annotations.get_or_insert_default());
        if from == to && !changed {
            return None;
        }
        let event = (from != to).then(|| {
            let direction = if from < to { "up" } else { "down" };
            format!("Scaled {direction} replica set {} from {from} to {to}", set.name_any())
        });
        Some(Write::Update(Box::new(updated), event))
    }

    /// Whether `spec.replicas` changed since the sets were last sized.
    fn was_scaled(&self) -> bool {
        let replicas = i64::from(desired_replicas(self.deployment));
        self.active()
            .iter()
            .any(|set| number(set, DESIRED).is_some_and(|desired| desired != replicas))
    }

    fn scale(&self) -> Vec<Write> {
        let replicas = desired_replicas(self.deployment);
        let active = self.active();
        let only = match active.as_slice() {
            [] => self
                .new
                .clone()
                .or_else(|| self.old.iter().max_by_key(|set| rollout::age_key(set)).cloned()),
            [one] => Some(one.clone()),
            _ => None,
        };
        if let Some(only) = only {
            return self.resize(&only, replicas).into_iter().collect();
        }
        let saturated = self.new.as_ref().is_some_and(|new| {
            size(new) == replicas && number(new, DESIRED) == Some(i64::from(replicas)) && available(new) == replicas
        });
        if saturated {
            let old = self.old.iter().filter(|set| size(set) > 0);
            return old.filter_map(|set| self.resize(set, 0)).collect();
        }
        if rollout::recreates(self.deployment) {
            return Vec::new();
        }
        let sizes = rollout::proportional(self.deployment, &active);
        sizes.iter().filter_map(|(set, size)| self.resize(set, *size)).collect()
    }

    fn roll(&self) -> Decision {
        let Some(new) = &self.new else {
            return self.create_new();
        };
        let replicas = desired_replicas(self.deployment);
        if size(new) != replicas {
            let to = if size(new) > replicas {
                replicas
            } else {
                rollout::new_set_size(self.deployment, self.total(), size(new))
            };
            if to != size(new) {
                return self.judged(self.resize(new, to).into_iter().collect());
            }
        }
        let shrink = self.shrink_old(new);
        if !shrink.is_empty() {
            return self.judged(shrink);
        }
        self.finished()
    }

    /// Old sets lose their unhealthy pods first, then as many healthy ones as the new set replaced.
    fn shrink_old(&self, new: &ReplicaSet) -> Vec<Write> {
        let least = desired_replicas(self.deployment) - rollout::max_unavailable(self.deployment);
        let mut allowance = self.total() - least - (size(new) - available(new));
        let mut old: Vec<_> = self.old.iter().filter(|set| size(set) > 0).cloned().collect();
        if allowance <= 0 || old.is_empty() {
            return Vec::new();
        }
        old.sort_by_key(|set| rollout::age_key(set));
        let mut sizes: Vec<i32> = old.iter().map(|set| size(set)).collect();
        for (set, size) in old.iter().zip(&mut sizes) {
            let unhealthy = (*size - available(set)).max(0).min(allowance);
            *size -= unhealthy;
            allowance -= unhealthy;
        }
        let in_service: i32 = old.iter().map(|set| available(set)).sum::<i32>() + available(new);
        let mut surplus = in_service - least;
        for size in &mut sizes {
            let give = surplus.clamp(0, *size);
            *size -= give;
            surplus -= give;
        }
        let changed = old.iter().zip(sizes).filter(|(set, to)| size(set) != *to);
        changed.filter_map(|(set, to)| self.resize(set, to)).collect()
    }

    fn recreate(&self, others_run: bool) -> Decision {
        let stop: Vec<_> = self
            .old
            .iter()
            .filter(|set| size(set) > 0)
            .filter_map(|set| self.resize(set, 0))
            .collect();
        if !stop.is_empty() || others_run {
            return self.judged(stop);
        }
        let Some(new) = &self.new else {
            return self.create_new();
        };
        if size(new) != desired_replicas(self.deployment) {
            return self.judged(
                self.resize(new, desired_replicas(self.deployment))
                    .into_iter()
                    .collect(),
            );
        }
        self.finished()
    }

    fn finished(&self) -> Decision {
        let complete = status::complete(self.deployment, &self.deployment.status.clone().unwrap_or_default());
        self.judged(if complete { self.clean_up() } else { Vec::new() })
    }

    /// Old, empty sets beyond the history limit, the lowest revision first.
    fn clean_up(&self) -> Vec<Write> {
        let limit = self
            .deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.revision_history_limit)
            .unwrap_or(10);
        if limit == i32::MAX {
            return Vec::new();
        }
        let mut candidates: Vec<_> = self
            .old
            .iter()
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .cloned()
            .collect();
        let surplus = candidates
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or_default());
        candidates.sort_by_key(|set| revision(set));
        candidates
            .into_iter()
            .take(surplus)
            .filter(|set| {
                let status = set.status.clone().unwrap_or_default();
                status.replicas == 0 && size(set) == 0 && set.metadata.generation <= status.observed_generation
            })
            .map(Write::Delete)
            .collect()
    }
}

fn copy_annotations(deployment: &Deployment, to: &mut BTreeMap<String, String>) -> bool {
    let mut changed = false;
    for (key, value) in deployment.annotations() {
        if !NOT_COPIED.contains(&key.as_str()) && to.get(key) != Some(value) {
            to.insert(key.clone(), value.clone());
            changed = true;
        }
    }
    changed
}

fn annotate_size(deployment: &Deployment, annotations: &mut BTreeMap<String, String>) -> bool {
    let replicas = desired_replicas(deployment);
    let most = replicas + rollout::surge_and_unavailable(deployment).0;
    let before = annotations.insert(DESIRED.into(), replicas.to_string());
    let max = annotations.insert(MAX.into(), most.to_string());
    before != Some(replicas.to_string()) || max != Some(most.to_string())
}

/// A set that is rolled back to keeps the numbers it had.
fn remember_revision(annotations: &mut BTreeMap<String, String>, known: i64) {
    let history = annotations.get(REVISION_HISTORY).cloned().unwrap_or_default();
    let mut numbers: Vec<String> = history
        .split(',')
        .filter(|number| !number.is_empty())
        .map(Into::into)
        .collect();
    numbers.push(known.to_string());
    while numbers.join(",").len() > LONGEST_HISTORY {
        numbers.remove(0);
    }
    annotations.insert(REVISION_HISTORY.into(), numbers.join(","));
}

/// Deployment and hash, within the limit of a name.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = 253 - 1 - hash.len();
    format!("{}-{hash}", &deployment[..deployment.len().min(room)])
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
