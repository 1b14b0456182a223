//! The arithmetic of a rollout: surge, unavailability, proportions, which set is new. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

/// The label that distinguishes the pods of two templates.
pub const HASH_LABEL: &str = "pod-template-hash";
/// The rollout's number.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// Numbers this set had before it was rolled back to.
pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The desired replicas of the deployment when the set was last scaled.
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The same, plus the surge.
pub const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// The desired replicas of the deployment.
pub fn desired_replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The desired replicas of a set.
pub fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The pods of a set that are available.
pub fn available(set: &ReplicaSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or_default()
}

/// Whether the strategy is Recreate (else it is `RollingUpdate`).
pub fn recreates(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// A number or a percentage of `total`.
pub fn resolve(value: &IntOrString, total: i32, round_up: bool) -> Option<i32> {
    match value {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let product = percent * i64::from(total);
            let rounded = if round_up {
                (product + 99).div_euclid(100)
            } else {
                product.div_euclid(100)
            };
            i32::try_from(rounded).ok()
        }
    }
}

/// How many pods more than desired, and how many fewer available ones, a rollout may have.
pub fn surge_and_unavailable(deployment: &Deployment) -> (i32, i32) {
    let total = desired_replicas(deployment);
    if recreates(deployment) {
        return (0, 0);
    }
    let rolling = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.strategy.as_ref())
        .and_then(|strategy| strategy.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".into());
    let surge = rolling
        .and_then(|rolling| rolling.max_surge.as_ref())
        .unwrap_or(&quarter);
    let unavailable = rolling
        .and_then(|rolling| rolling.max_unavailable.as_ref())
        .unwrap_or(&quarter);
    let surge = resolve(surge, total, true).unwrap_or_default().max(0);
    let unavailable = resolve(unavailable, total, false).unwrap_or_default().max(0);
    if surge == 0 && unavailable == 0 {
        // Rounding must not stop the rollout for good.
        return (0, 1);
    }
    (surge, unavailable)
}

/// How many replicas may be unavailable: never more than there are.
pub fn max_unavailable(deployment: &Deployment) -> i32 {
    surge_and_unavailable(deployment).1.min(desired_replicas(deployment))
}

/// The size the new set may grow to, next to the others.
pub fn new_set_size(deployment: &Deployment, all_sizes: i32, new_size: i32) -> i32 {
    if recreates(deployment) {
        return desired_replicas(deployment);
    }
    let most = desired_replicas(deployment) + surge_and_unavailable(deployment).0;
    if all_sizes >= most {
        return new_size;
    }
    new_size + (most - all_sizes).min(desired_replicas(deployment) - new_size)
}

/// The oldest set with the deployment's template, apart from the hash label.
pub fn find_new<'a>(deployment: &Deployment, sets: &'a [Arc<ReplicaSet>]) -> Option<&'a Arc<ReplicaSet>> {
    let template = &deployment.spec.as_ref()?.template;
    let mut sorted: Vec<_> = sets.iter().collect();
    sorted.sort_by_key(|set| age_key(set));
    sorted.into_iter().find(|set| {
        let other = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        other.is_some_and(|other| without_hash(other) == without_hash(template))
    })
}

/// For sorting the oldest first.
pub fn age_key(set: &ReplicaSet) -> (Option<k8s_openapi::jiff::Timestamp>, String) {
    (
        set.metadata.creation_timestamp.as_ref().map(|time| time.0),
        set.name_any(),
    )
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    meta.creation_timestamp = None;
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH_LABEL);
    }
    meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
    meta.annotations = meta.annotations.take().filter(|annotations| !annotations.is_empty());
    template
}

/// A number in an annotation.
pub fn number(set: &ReplicaSet, annotation: &str) -> Option<i64> {
    set.annotations().get(annotation)?.parse().ok()
}

/// The revision of a set, 0 when it has none.
pub fn revision(set: &ReplicaSet) -> i64 {
    number(set, REVISION).unwrap_or_default()
}

/// Sizes for every active set after the deployment was scaled in the middle of a rollout: each gets its share.
pub fn proportional(deployment: &Deployment, active: &[Arc<ReplicaSet>]) -> Vec<(Arc<ReplicaSet>, i32)> {
    let total: i32 = active.iter().map(|set| size(set)).sum();
    let surge = surge_and_unavailable(deployment).0;
    let allowed = if desired_replicas(deployment) > 0 {
        desired_replicas(deployment) + surge
    } else {
        0
    };
    let to_add = allowed - total;
    let mut sorted = active.to_vec();
    sorted.sort_by(|a, b| {
        let by_age = age_key(a).cmp(&age_key(b));
        size(b)
            .cmp(&size(a))
            .then(if to_add > 0 { by_age.reverse() } else { by_age })
    });
    let mut added = 0;
    let mut sizes: Vec<_> = sorted
        .into_iter()
        .map(|set| {
            let share = share(deployment, &set, to_add, added);
            added += share;
            let new = size(&set) + share;
            (set, new)
        })
        .collect();
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

fn share(deployment: &Deployment, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    if size(set) == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let fraction = fraction(deployment, set);
    let left = to_add - added;
    if to_add > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    if desired_replicas(deployment) == 0 {
        return -size(set);
    }
    let most = desired_replicas(deployment) + surge_and_unavailable(deployment).0;
    let reported = deployment
        .status
        .as_ref()
        .and_then(|status| status.replicas)
        .map(i64::from);
    let before = number(set, MAX)
        .filter(|before| *before > 0)
        .or(reported)
        .filter(|before| *before > 0);
    let Some(before) = before else {
        return 0;
    };
    let new = i64::from(size(set)) * i64::from(most);
    // Rounded to the nearest, halves up.
    let rounded = (2 * new + before).div_euclid(2 * before);
    i32::try_from(rounded).unwrap_or(i32::MAX) - size(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(replicas: i32, surge: &serde_json::Value, unavailable: &serde_json::Value) -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {
            "replicas": replicas, "selector": {}, "template": {"metadata": {"labels": {"a": "b"}}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}}))
        .unwrap()
    }

    fn set(name: &str, replicas: i32, max: i32, created: &str) -> Arc<ReplicaSet> {
        Arc::new(
            serde_json::from_value(json!({"metadata": {"name": name, "creationTimestamp": created,
                "annotations": {MAX: max.to_string()}}, "spec": {"replicas": replicas, "selector": {}}}))
            .unwrap(),
        )
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        let cases = [
            (10, json!("25%"), json!("25%"), (3, 2)),
            (1, json!("25%"), json!("25%"), (1, 0)),
            (3, json!(0), json!("10%"), (0, 1)),
            (4, json!(1), json!(0), (1, 0)),
            (0, json!("25%"), json!("25%"), (0, 1)),
        ];
        for (replicas, surge, unavailable, expected) in cases {
            assert_eq!(
                surge_and_unavailable(&deployment(replicas, &surge, &unavailable)),
                expected
            );
        }
        assert_eq!(max_unavailable(&deployment(0, &json!(1), &json!(1))), 0);
    }

    #[test]
    fn the_new_set_grows_into_the_surge_only() {
        let d = deployment(10, &json!(3), &json!(2));
        assert_eq!(new_set_size(&d, 10, 0), 3);
        assert_eq!(new_set_size(&d, 13, 3), 3);
        assert_eq!(new_set_size(&d, 11, 9), 10);
    }

    #[test]
    fn scaling_in_the_middle_of_a_rollout_keeps_the_proportions() {
        let d = deployment(20, &json!(0), &json!(1));
        let sets = [
            set("old", 6, 10, "2026-01-01T00:00:00Z"),
            set("new", 4, 10, "2026-01-01T00:01:00Z"),
        ];
        let sizes: Vec<_> = proportional(&d, &sets)
            .into_iter()
            .map(|(set, size)| (set.name_any(), size))
            .collect();
        assert_eq!(sizes, [("old".into(), 12), ("new".into(), 8)]);
    }

    #[test]
    fn the_remainder_goes_to_the_largest_set_and_the_sum_is_exact() {
        for desired in 0..40 {
            let d = deployment(desired, &json!(2), &json!(1));
            let sets = [
                set("a", 7, 12, "2026-01-01T00:00:00Z"),
                set("b", 4, 12, "2026-01-01T00:01:00Z"),
                set("c", 1, 12, "2026-01-01T00:02:00Z"),
            ];
            let sizes = proportional(&d, &sets);
            let sum: i32 = sizes.iter().map(|(_, size)| size).sum();
            let expected = if desired == 0 { 0 } else { desired + 2 };
            assert_eq!(sum, expected, "desired {desired}: {sizes:?}");
        }
    }

    #[test]
    fn the_new_set_is_the_oldest_with_the_same_template() {
        let d = deployment(1, &json!(1), &json!(1));
        let mut same = (*set("same", 1, 1, "2026-01-01T00:02:00Z")).clone();
        same.spec.as_mut().unwrap().template =
            serde_json::from_value(json!({"metadata": {"labels": {"a": "b", HASH_LABEL: "xyz"}}})).unwrap();
        let mut older = same.clone();
        older.metadata.name = Some("older".into());
        older.metadata.creation_timestamp = serde_json::from_value(json!("2026-01-01T00:01:00Z")).unwrap();
        let sets = [
            set("other", 1, 1, "2026-01-01T00:00:00Z"),
            Arc::new(same),
            Arc::new(older),
        ];
        assert_eq!(find_new(&d, &sets).unwrap().name_any(), "older");
    }
}
