//! `candor events`: what was told of a cluster and of its members, the newest last.

use std::error::Error;

use candor_operator::objects::names;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

use super::connect::Connection;
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data};
use super::picture::happened;
use super::status::screen::{Transition, draw_transitions};

/// What was told of a cluster, the newest last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor events shop             of the cluster
  candor events shop --members   ... and of its members' objects")]
pub struct Events {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// Also those of its nodes, workloads, pods and volumes.
    #[arg(long)]
    members: bool,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

impl Events {
    /// Prints them.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        // That there is such a cluster, or was: events outlive it.
        let there = at.cluster(&self.name).await;
        let api: Api<Event> = Api::namespaced(at.client.clone(), &at.namespace);
        let list = api.list(&ListParams::default()).await;
        let mut events = list.map_err(|error| CommandError::of(&error, "Event"))?.items;
        events.retain(|event| is_of(event, &self.name, self.members));
        if events.is_empty() {
            there?;
        }
        events.sort_by_key(happened);
        let told: Vec<Transition> = events.iter().map(|event| told(event, self.members)).collect();
        if print_data(&told, self.output)? {
            return Ok(());
        }
        if told.is_empty() {
            return print(
                "Nothing was told lately. A healthy cluster emits no events, and they are kept for about an hour.\n",
            );
        }
        print(&draw_transitions(
            &told,
            Timestamp::now(),
            &Screen::of_stdout(self.output),
        ))
    }
}

fn told(event: &Event, with_object: bool) -> Transition {
    let mut told = Transition::from(event);
    if with_object {
        let about = &event.involved_object;
        let (kind, name) = (
            about.kind.as_deref().unwrap_or_default(),
            about.name.as_deref().unwrap_or_default(),
        );
        told.message = format!("{kind}/{name}: {}", told.message);
    }
    told
}

/// Whether an event is about a cluster or, if asked for, about an object that is named after it.
fn is_of(event: &Event, cluster: &str, members: bool) -> bool {
    let about = &event.involved_object;
    let (kind, name) = (
        about.kind.as_deref().unwrap_or_default(),
        about.name.as_deref().unwrap_or_default(),
    );
    if kind == "ValkeyCluster" {
        return name == cluster;
    }
    // `shop-0-1`, `valkey-shop-0-1-…`; a cluster named `shop-eu` has members of its own.
    let shared = names::shared(cluster);
    let place = name
        .strip_prefix(&shared)
        .or_else(|| name.strip_prefix(cluster).filter(|_| kind == "ValkeyNode"));
    let is_member = |rest: &str| {
        let mut parts = rest.strip_prefix('-').unwrap_or_default().splitn(3, '-');
        let mut number = || {
            parts
                .next()
                .is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        };
        number() && number()
    };
    members && place.is_some_and(|rest| rest.is_empty() || rest == "-client" || is_member(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_told_by_their_names() {
        let event = |kind: &str, name: &str| -> Event {
            serde_json::from_value(json!({"metadata": {}, "involvedObject": {"kind": kind, "name": name}})).unwrap()
        };
        for (kind, name, is) in [
            ("ValkeyCluster", "shop", true),
            ("ValkeyCluster", "shop-eu", false),
            ("ValkeyNode", "shop-0-1", true),
            ("ValkeyNode", "shop-eu-0-1", false),
            ("Pod", "valkey-shop-0-1-abc-xyz", true),
            ("Pod", "valkey-shop-eu-0-1-abc", false),
            ("Service", "valkey-shop-client", true),
            ("Pod", "other", false),
        ] {
            assert_eq!(is_of(&event(kind, name), "shop", true), is, "{kind} {name}");
        }
        assert!(!is_of(&event("ValkeyNode", "shop-0-1"), "shop", false));
    }
}
