//! Every declared event and condition is observed as it is written to the API server, with exactly the message in
//! [`texts`]. No other message is written.

mod collector;
mod messages;
mod scene;
mod scenes;

pub use scene::{rejection, through};

use std::collections::BTreeSet;

use candor_api::valkey::conditions::ClusterCondition;
use kube_status::{ConditionType, Reason};

use collector::Collector;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_declared_event_and_reason_is_reported_with_its_message() {
    let collected = Collector::default();
    let mut scenes = JoinSet::new();
    scenes.spawn(scenes::life(collected.clone()));
    scenes.spawn(scenes::losses(collected.clone()));
    scenes.spawn(scenes::bad_input(collected.clone()));
    scenes.spawn(scenes::rejected_writes(collected.clone()));
    scenes.spawn(scenes::volumes(collected.clone()));
    scenes.spawn(scenes::refusing_servers(collected.clone()));
    scenes.spawn(scenes::blind(collected.clone()));
    scenes.spawn(scenes::zones(collected.clone()));
    let mut wrong = Vec::new();
    while let Some(scene) = scenes.join_next().await {
        wrong.extend(scene.err().map(|failed| failed.to_string()));
    }
    wrong.extend(compared(&collected.events(), messages::events()));
    wrong.extend(compared(&collected.conditions(), messages::conditions()));
    wrong.extend(unlisted());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (events, conditions) = (collected.events().len(), collected.conditions().len());
    println!("{events} different events and {conditions} different conditions heard, none in other words");
}

/// Expected texts that were not observed, and observed texts that were not expected.
fn compared(collected: &BTreeSet<String>, texts: impl Iterator<Item = String>) -> Vec<String> {
    let texts: Vec<String> = texts.collect();
    let known = |recorded: &String| {
        texts
            .iter()
            .any(|text| messages::fits(recorded, text.trim_start_matches('?')))
    };
    let silent = texts
        .iter()
        .filter(|text| !text.starts_with('?') && !collected.iter().any(|recorded| messages::fits(recorded, text)));
    let strange = collected.iter().filter(|recorded| !known(recorded));
    let silent = silent.map(|text| format!("never told: {text}"));
    silent
        .chain(strange.map(|recorded| format!("told in other words: {recorded}")))
        .collect()
}

/// Declared condition reasons that are missing in the texts.
fn unlisted() -> Vec<String> {
    let texts: Vec<String> = messages::conditions().collect();
    let listed: BTreeSet<(&str, &str)> = texts.iter().filter_map(|line| messages::pair(line)).collect();
    let declared = ClusterCondition::ALL
        .iter()
        .flat_map(|one| one.reasons().iter().map(|reason| (one.name(), reason.name())));
    declared
        .filter(|pair| !listed.contains(pair))
        .map(|(one, reason)| format!("in no text: {one} {reason}"))
        .collect()
}
