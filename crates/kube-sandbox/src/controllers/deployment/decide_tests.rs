//! Rollouts, step by step: a world in which every pod becomes available at once.

use super::*;
use serde_json::json;

fn now() -> Time {
    serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap()
}

fn deployment(replicas: i32, image: &str, strategy: &serde_json::Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 1, "annotations": {"team": "red"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy,
            "progressDeadlineSeconds": 600, "revisionHistoryLimit": 1,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}}}))
    .unwrap()
}

/// The sets as an API server would hold them, with every wanted pod available.
#[derive(Default)]
struct World {
    sets: Vec<Arc<ReplicaSet>>,
    events: Vec<String>,
    born: i64,
}

impl World {
    fn carry_out(&mut self, decision: &Decision) {
        for write in &decision.writes {
            match write {
                Write::Create(set) => {
                    self.born += 1;
                    let mut set = (**set).clone();
                    set.metadata.uid = set.metadata.name.clone();
                    set.metadata.creation_timestamp =
                        Some(crate::controllers::runtime::after_seconds(&now(), self.born));
                    self.sets.push(Arc::new(set));
                }
                Write::Update(set, event) => {
                    let slot = self.sets.iter_mut().find(|known| known.uid() == set.uid()).unwrap();
                    *slot = Arc::new((**set).clone());
                    self.events.extend(event.clone());
                }
                Write::Delete(set) => self.sets.retain(|known| known.uid() != set.uid()),
            }
        }
        for set in &mut self.sets {
            let mut grown = (**set).clone();
            let size = size(&grown);
            grown.status = Some(
                serde_json::from_value(json!({"replicas": size, "readyReplicas": size, "availableReplicas": size}))
                    .unwrap(),
            );
            *set = Arc::new(grown);
        }
    }

    /// Steps until nothing is written any more; the bounds of a rollout hold at every step.
    fn settle(&mut self, deployment: &mut Deployment) {
        let (surge, unavailable) = rollout::surge_and_unavailable(deployment);
        for _ in 0..50 {
            let decision = decide(deployment, &self.sets, false, &now());
            self.carry_out(&decision);
            deployment.status = Some(decision.status.clone());
            if let Some(revision) = &decision.revision {
                deployment.annotations_mut().insert(REVISION.into(), revision.clone());
            }
            let total: i32 = self.sets.iter().map(|set| size(set)).sum();
            assert!(
                total <= desired_replicas(deployment) + surge,
                "more pods than the surge allows"
            );
            if self.sets.len() > 1 && !rollout::recreates(deployment) {
                assert!(
                    total >= desired_replicas(deployment) - unavailable,
                    "fewer pods than may be unavailable"
                );
            }
            if decision.writes.is_empty() && decide(deployment, &self.sets, false, &now()) == decision {
                return;
            }
        }
        panic!("the rollout never settled: {:?}", self.events);
    }

    fn sizes(&self) -> Vec<i32> {
        self.sets.iter().map(|set| size(set)).collect()
    }
}

fn rolling() -> serde_json::Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
}

#[test]
fn the_first_set_is_made_at_full_size_with_hash_revision_and_annotations() {
    let d = deployment(3, "a:1", &rolling());
    let decision = decide(&d, &[], false, &now());
    let [Write::Create(set)] = decision.writes.as_slice() else {
        panic!("{decision:?}");
    };
    let hash = set.labels()[HASH_LABEL].clone();
    assert_eq!(set.name_any(), format!("web-{hash}"));
    assert_eq!(size(set), 3);
    assert_eq!(set.annotations()["team"], "red");
    assert_eq!(set.annotations()[REVISION], "1");
    assert_eq!(set.annotations()[DESIRED], "3");
    assert_eq!(set.annotations()[MAX], "4");
    let spec = set.spec.as_ref().unwrap();
    assert_eq!(spec.selector.match_labels.as_ref().unwrap()[HASH_LABEL], hash);
    assert_eq!(
        spec.template
            .as_ref()
            .unwrap()
            .metadata
            .as_ref()
            .unwrap()
            .labels
            .as_ref()
            .unwrap()[HASH_LABEL],
        hash
    );
    assert_eq!(decision.revision.as_deref(), Some("1"));
    let progressing = status::find(&decision.status, "Progressing").unwrap();
    assert_eq!(progressing.reason.as_deref(), Some("NewReplicaSetCreated"));
}

#[test]
fn a_rolling_update_replaces_one_by_one_and_reports_it() {
    let mut world = World::default();
    let mut d = deployment(2, "a:1", &rolling());
    world.settle(&mut d);
    let mut next = deployment(2, "a:2", &rolling());
    next.status = d.status.clone();
    world.settle(&mut next);
    assert_eq!(world.sizes(), [0, 2]);
    let (old, new) = (world.sets[0].name_any(), world.sets[1].name_any());
    assert_eq!(
        world.events,
        [
            format!("Scaled down replica set {old} from 2 to 1"),
            format!("Scaled up replica set {new} from 1 to 2"),
            format!("Scaled down replica set {old} from 1 to 0"),
        ]
    );
    assert_eq!(next.annotations()[REVISION], "2");
}

#[test]
fn a_rollback_takes_the_old_set_again_under_a_new_revision() {
    let mut world = World::default();
    let mut d = deployment(2, "a:1", &rolling());
    world.settle(&mut d);
    for image in ["a:2", "a:1"] {
        let mut next = deployment(2, image, &rolling());
        next.status = d.status.clone();
        world.settle(&mut next);
        d = next;
    }
    assert_eq!(world.sets.len(), 2, "no third set for a template that has one");
    assert_eq!(world.sizes(), [2, 0]);
    assert_eq!(world.sets[0].annotations()[REVISION], "3");
    assert_eq!(world.sets[0].annotations()[REVISION_HISTORY], "1");
}

#[test]
fn recreate_stops_everything_before_it_starts_anything() {
    let strategy = json!({"type": "Recreate"});
    let mut world = World::default();
    let mut d = deployment(2, "a:1", &strategy);
    world.settle(&mut d);
    let next = deployment(2, "a:2", &strategy);
    let stop = decide(&next, &world.sets, true, &now());
    assert!(matches!(stop.writes.as_slice(), [Write::Update(set, Some(_))] if size(set) == 0));
    world.carry_out(&stop);
    assert_eq!(
        decide(&next, &world.sets, true, &now()).writes,
        [],
        "old pods still run"
    );
    assert!(
        matches!(decide(&next, &world.sets, false, &now()).writes.as_slice(), [Write::Create(set)] if size(set) == 2)
    );
}

#[test]
fn a_paused_deployment_is_scaled_but_not_rolled() {
    let mut world = World::default();
    let mut d = deployment(2, "a:1", &rolling());
    world.settle(&mut d);
    let mut paused = deployment(5, "a:2", &rolling());
    paused.spec.as_mut().unwrap().paused = Some(true);
    paused.status = d.status.clone();
    let decision = decide(&paused, &world.sets, false, &now());
    world.carry_out(&decision);
    assert_eq!(world.sizes(), [5]);
    let progressing = status::find(&decision.status, "Progressing").unwrap();
    assert_eq!(progressing.reason.as_deref(), Some("DeploymentPaused"));
    assert_eq!(progressing.message.as_deref(), Some("Deployment is paused"));
}

#[test]
fn history_beyond_the_limit_is_deleted_oldest_first() {
    let mut world = World::default();
    let mut d = deployment(1, "a:1", &rolling());
    world.settle(&mut d);
    for image in ["a:2", "a:3", "a:4"] {
        let mut next = deployment(1, image, &rolling());
        next.status = d.status.clone();
        world.settle(&mut next);
        d = next;
    }
    let revisions: Vec<_> = world
        .sets
        .iter()
        .map(|set| set.annotations()[REVISION].clone())
        .collect();
    assert_eq!(revisions, ["3", "4"]);
}

#[test]
fn every_surge_and_unavailability_settles_within_its_bounds() {
    for replicas in 0..8 {
        for surge in 0..3 {
            for unavailable in 0..3 {
                let strategy = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
                let mut world = World::default();
                let mut d = deployment(replicas, "a:1", &strategy);
                world.settle(&mut d);
                let mut next = deployment(replicas, "a:2", &strategy);
                next.status = d.status.clone();
                world.settle(&mut next);
                assert_eq!(*world.sizes().last().unwrap(), replicas);
                assert!(status::complete(&next, next.status.as_ref().unwrap()));
            }
        }
    }
}

#[test]
fn a_long_name_leaves_room_for_the_hash() {
    assert_eq!(set_name(&"x".repeat(253), "abcdef").len(), 253);
}
