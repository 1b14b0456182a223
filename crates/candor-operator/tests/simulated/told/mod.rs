//! Every declared event and condition is observed as it is written to the API server, with exactly the message in
//! [`texts`]. No other message is written.

mod hearing;
mod scene;
mod scenes;
mod texts;

pub use scene::{rejection, through};

use std::collections::BTreeSet;

use candor_api::valkey::conditions::ClusterCondition;
use kube_status::{ConditionType, Reason};

use hearing::Heard;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_declared_event_and_reason_is_reported_with_its_message() {
    let heard = Heard::default();
    let mut scenes = JoinSet::new();
    scenes.spawn(scenes::life(heard.clone()));
    scenes.spawn(scenes::losses(heard.clone()));
    scenes.spawn(scenes::bad_input(heard.clone()));
    scenes.spawn(scenes::refused_writes(heard.clone()));
    scenes.spawn(scenes::volumes(heard.clone()));
    scenes.spawn(scenes::refusing_servers(heard.clone()));
    scenes.spawn(scenes::blind(heard.clone()));
    scenes.spawn(scenes::zones(heard.clone()));
    let mut wrong = Vec::new();
    while let Some(scene) = scenes.join_next().await {
        wrong.extend(scene.err().map(|failed| failed.to_string()));
    }
    wrong.extend(compared(&heard.events(), texts::events()));
    wrong.extend(compared(&heard.conditions(), texts::conditions()));
    wrong.extend(unlisted());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (events, conditions) = (heard.events().len(), heard.conditions().len());
    println!("{events} different events and {conditions} different conditions heard, none in other words");
}

/// Expected texts that were not observed, and observed texts that were not expected.
fn compared(heard: &BTreeSet<String>, texts: impl Iterator<Item = String>) -> Vec<String> {
    let texts: Vec<String> = texts.collect();
    let known = |told: &String| texts.iter().any(|text| texts::fits(told, text.trim_start_matches('?')));
    let silent = texts
        .iter()
        .filter(|text| !text.starts_with('?') && !heard.iter().any(|told| texts::fits(told, text)));
    let strange = heard.iter().filter(|told| !known(told));
    let silent = silent.map(|text| format!("never told: {text}"));
    silent
        .chain(strange.map(|told| format!("told in other words: {told}")))
        .collect()
}

/// Declared condition reasons that are missing in the texts.
fn unlisted() -> Vec<String> {
    let texts: Vec<String> = texts::conditions().collect();
    let listed: BTreeSet<(&str, &str)> = texts.iter().filter_map(|line| texts::pair(line)).collect();
    let declared = ClusterCondition::ALL
        .iter()
        .flat_map(|one| one.reasons().iter().map(|reason| (one.name(), reason.name())));
    declared
        .filter(|pair| !listed.contains(pair))
        .map(|(one, reason)| format!("in no text: {one} {reason}"))
        .collect()
}
