//! Primaries that are piled up in one zone: reported as information, and nothing else changes.

use candor_engine::model::MemberRef;

use crate::scene::{Scene, at, lines};

const PILED: &str = "PrimariesSpread=False PrimariesPiledUp (Info): Primaries are piled up: 3 in a, 0 in b; a failover \
                     of shard 0 spreads them: candor failover sample -n default --spread";

/// Sets the zone of every member.
fn place(scene: &mut Scene, zone: impl Fn(MemberRef) -> Option<&'static str>) {
    for (of, member) in &mut scene.observed.members {
        member.pod.as_mut().unwrap().zone = zone(*of).map(str::to_owned);
    }
}

/// Primaries in one zone, replicas in another.
fn piled(of: MemberRef) -> &'static str {
    if of.node == 0 { "a" } else { "b" }
}

fn spread(scene: &mut Scene) -> Vec<String> {
    let report = scene.reconcile(&[]);
    assert_eq!(report.status.reason, "ClusterHealthy");
    assert_eq!(report.events, []);
    let lines = lines(&report.status);
    lines
        .into_iter()
        .filter(|line| line.starts_with("PrimariesSpread"))
        .collect()
}

#[test]
fn a_pile_is_reported_once_and_leaves_ready_alone() {
    let mut scene = Scene::healthy(3, 1);
    assert_eq!(spread(&mut scene), [""; 0], "nothing is known about zones");
    place(&mut scene, |_| Some(""));
    assert_eq!(spread(&mut scene), [""; 0], "nodes have no zones");
    place(&mut scene, |of| Some(piled(of)));
    assert_eq!(spread(&mut scene), [PILED]);
    let before = scene.cluster.status.clone();
    scene.later(600);
    assert_eq!(spread(&mut scene), [PILED]);
    assert_eq!(scene.cluster.status, before, "nothing to write");
    place(&mut scene, |of| {
        Some(["a", "b", "c"][((of.shard.0 + of.node) % 3) as usize])
    });
    assert_eq!(spread(&mut scene), [""; 0], "spread");
}

#[test]
fn a_pile_stays_reported_while_nodes_are_unknown() {
    let mut scene = Scene::healthy(3, 1);
    place(&mut scene, |of| Some(piled(of)));
    assert_eq!(spread(&mut scene), [PILED]);
    let before = scene.cluster.status.clone();
    place(&mut scene, |_| None);
    assert_eq!(
        spread(&mut scene),
        [PILED],
        "an operator that has just started has not listed nodes"
    );
    assert_eq!(scene.cluster.status, before, "nothing to write");
}

#[test]
fn a_pile_is_not_reported_beside_a_fault() {
    let mut scene = Scene::healthy(3, 1);
    place(&mut scene, |of| Some(piled(of)));
    assert_eq!(spread(&mut scene), [PILED]);
    scene.kill(at(1, 1));
    let report = scene.reconcile(&[]);
    let lines = lines(&report.status);
    assert!(
        !lines.iter().any(|line| line.starts_with("PrimariesSpread")),
        "{lines:?}"
    );
}
