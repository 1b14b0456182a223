//! `candor failover`: a replica takes over, with the primary's help. The wish is written on the cluster, the operator
//! does it, and this word waits and says what came of it.

use std::error::Error;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_api::valkey::events::ClusterEvent;
use candor_api::valkey::status::{MemberRole, ShardTopology};
use candor_api::valkey::{FAILOVER, FAILOVER_REFUSED};
use candor_engine::model::{Handover, MemberRef, ShardIndex};
use clap::Args;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use kube_status::Reason;
use serde_json::json;

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::liveness::Liveness;
use super::output::{print, some};
use super::picture::{Picture, Wish, happened};
use super::status::answer::Answer;
use super::status::shards::{self, Member};
use super::wishes;

/// After the request is gone, status tells the new primary at once, or an event tells why there is none.
const TELLING: Duration = Duration::from_secs(5);

/// A replica becomes the primary of its shard, with the old primary's help: nothing acknowledged is lost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor failover shop --shard 1            the best replica takes over
  candor failover shop --shard 1 --to 1-2   this one does
  candor failover shop --shard 1 --no-wait  only asks; the operator does it when nothing else is under way")]
pub struct Failover {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// The shard whose primary shall give way.
    #[arg(long, value_name = "N")]
    shard: u32,
    /// The member that shall take over: its place, or shard and place as status shows them.
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,
    /// How many seconds to wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Asks, and does not wait.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    at: Connection,
}

impl Failover {
    /// Asks, waits, and says what came of it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let picture = Picture::take(&at, &self.name, &Wish::default()).await?;
        let handover = ask(&picture, self.shard, self.to.as_deref()).map_err(CommandError::Usage)?;
        let wish = json!({"metadata": {"annotations": {FAILOVER: handover.to_string()}}});
        wishes::write(&at, &self.name, &wish).await?;
        let begun = Instant::now();
        let heir = handover
            .to
            .map_or("the best replica".to_owned(), |to| format!("member {to}"));
        print(&format!(
            "{}: the primary of shard {} gives way to {heir}.\n",
            self.name, self.shard
        ))?;
        if self.no_wait {
            return print(&format!("See: candor status {} --watch\n", self.name));
        }
        let limit = Duration::from_secs(self.timeout);
        let heir = match tokio::time::timeout(limit, wait(&at, &self.name, &handover)).await {
            Ok(came) => came?,
            Err(_) => return Err(self.overdue(&at).await.into()),
        };
        print(&format!(
            "Done after {:.1} s: member {heir} is the primary of shard {}.\n",
            begun.elapsed().as_secs_f64(),
            self.shard
        ))
    }

    /// It takes longer than whoever asked wants to wait.
    async fn overdue(&self, at: &Connected) -> CommandError {
        let now = Timestamp::now();
        let picture = Picture::take(at, &self.name, &Wish::default()).await;
        let sentence = picture.map_or_else(
            |error| error.to_string(),
            |picture| Answer::of(&picture.cluster, &picture.operator, now).sentence,
        );
        CommandError::Usage(format!(
            "it is not done after {}. {sentence}\nIt is still asked for, and done when nothing else is under way. \
             Take it back with: kubectl annotate vkc {} -n {} {FAILOVER}-",
            some(i64::try_from(self.timeout).unwrap_or(i64::MAX), "second"),
            self.name,
            at.namespace
        ))
    }
}

/// The request that is to be written, or why there is no use in writing it.
fn ask(picture: &Picture, shard: u32, to: Option<&str>) -> Result<Handover, String> {
    let cluster = &picture.cluster;
    let name = cluster.name_any();
    if cluster.metadata.deletion_timestamp.is_some() {
        return Err(format!("{name} is being deleted"));
    }
    if cluster.spec.paused == Some(true) {
        return Err(format!(
            "{name} is paused: the operator changes nothing\nLet it go on first: candor resume {name}"
        ));
    }
    if let Liveness::Gone { .. } = picture.operator {
        let words = picture.operator.words(picture.now).unwrap_or_default();
        return Err(format!(
            "{words}\nStart the operator, or see why it does not run: candor doctor"
        ));
    }
    if let Some(asked) = cluster.annotations().get(FAILOVER) {
        return Err(format!(
            "a failover is asked for already and not done yet ({asked})\nSee what it waits for: candor status {name}"
        ));
    }
    let topology = cluster
        .status
        .as_ref()
        .map(|status| status.topology.as_slice())
        .unwrap_or_default();
    let known = topology.iter().find(|one| u32::try_from(one.shard) == Ok(shard));
    let Some(known) = known else {
        let last = topology.iter().map(|one| one.shard).max();
        let there = last.map_or("none yet".to_owned(), |last| format!("0 to {last}"));
        return Err(format!("{name} has no shard {shard}; its shards: {there}"));
    };
    let from = primary(known).and_then(|(_, id)| id.parse().ok());
    let Some(from) = from else {
        return Err(format!(
            "shard {shard} of {name} has no primary now\nSee why: candor status {name}"
        ));
    };
    let members = shards::shards(picture).into_iter().find(|one| one.shard == shard);
    let replicas: Vec<Member> = members
        .into_iter()
        .flat_map(|one| one.members)
        .filter(|member| member.role == Some(MemberRole::Replica))
        .collect();
    let to = to.map(|text| heir(text, shard, known, &replicas)).transpose()?;
    match (to, replicas.iter().any(is_in_sync)) {
        (Some(_), _) | (None, true) => Ok(Handover {
            shard: ShardIndex(shard),
            from,
            to,
        }),
        (None, false) => Err(none_in_sync(&name, shard, &replicas)),
    }
}

/// The member that is named, if it can take over.
fn heir(text: &str, shard: u32, known: &ShardTopology, replicas: &[Member]) -> Result<MemberRef, String> {
    let place = text.parse().ok().map(|node| MemberRef {
        shard: ShardIndex(shard),
        node,
    });
    let to: MemberRef = match place {
        Some(at) => at,
        None => text.parse().map_err(|error| format!("--to {text}: {error}"))?,
    };
    let there: Vec<&str> = replicas.iter().map(|one| one.member.as_str()).collect();
    let there = if there.is_empty() {
        "none".to_owned()
    } else {
        there.join(", ")
    };
    if primary(known).is_some_and(|(node, _)| to.shard.0 == shard && node == to.node) {
        return Err(format!(
            "member {to} is the primary of shard {shard} already; its replicas: {there}"
        ));
    }
    match replicas.iter().find(|one| one.member == to.to_string()) {
        None => Err(format!("shard {shard} has no replica {to}; its replicas: {there}")),
        Some(one) if is_in_sync(one) => Ok(to),
        Some(one) => Err(format!(
            "member {to} is not in sync ({}): it would lose writes",
            one.reason
        )),
    }
}

fn is_in_sync(member: &Member) -> bool {
    member.ready == Some(true) && member.link_up != Some(false)
}

fn none_in_sync(name: &str, shard: u32, replicas: &[Member]) -> String {
    if replicas.is_empty() {
        return format!(
            "shard {shard} of {name} has no replica that could take over\nGive it one: kubectl patch vkc {name} \
             --type merge -p '{{\"spec\":{{\"replicas\":1}}}}'"
        );
    }
    let said: Vec<String> = replicas
        .iter()
        .map(|one| {
            format!(
                "{} is {}",
                one.member,
                if one.reason.is_empty() {
                    "not ready"
                } else {
                    &one.reason
                }
            )
        })
        .collect();
    format!(
        "shard {shard} of {name} has no replica in sync: {}\nSee what is done about it: candor status {name}",
        said.join(", ")
    )
}

/// Place and id of a shard's primary, as status has them.
fn primary(shard: &ShardTopology) -> Option<(u32, &str)> {
    let head = shard.members.iter().find(|one| one.role == Some(MemberRole::Primary))?;
    Some((u32::try_from(head.node).ok()?, head.node_id.as_str()))
}

/// Waits until the request is answered: who took over, or why nobody did. A watch that breaks is begun again.
async fn wait(at: &Connected, name: &str, handover: &Handover) -> Result<MemberRef, CommandError> {
    let begun = Timestamp::now();
    let api: Api<ValkeyCluster> = Api::namespaced(at.client.clone(), &at.namespace);
    let mut changes = std::pin::pin!(watcher::watch_object(api, name).default_backoff());
    let mut answered: Option<tokio::time::Instant> = None;
    loop {
        let told = answered.map(|at| at + TELLING);
        let change = async {
            match told {
                Some(until) => tokio::time::timeout_at(until, changes.next()).await.ok(),
                None => Some(changes.next().await),
            }
        };
        match change.await {
            Some(Some(Ok(Some(cluster)))) => {
                let asked = cluster.annotations().get(FAILOVER);
                let open = asked.is_some_and(|asked| *asked == handover.to_string());
                if let Some(heir) = successor(&cluster, handover).filter(|_| !open) {
                    return Ok(heir);
                }
                if !open && answered.is_none() {
                    answered = Some(tokio::time::Instant::now());
                    if let Some(words) = refusal(at, name, begun).await {
                        return Err(CommandError::Usage(words));
                    }
                }
            }
            Some(Some(Ok(None))) => return Err(CommandError::Usage(format!("{name} was deleted meanwhile"))),
            // The watch is begun again by itself.
            Some(Some(Err(_))) => {}
            Some(None) | None => {
                let words = refusal(at, name, begun).await;
                let words = words.unwrap_or_else(|| {
                    format!("the request was answered, and the primary is still the same\nSee: candor events {name}")
                });
                return Err(CommandError::Usage(words));
            }
        }
    }
}

/// The new primary, once status has it.
fn successor(cluster: &ValkeyCluster, handover: &Handover) -> Option<MemberRef> {
    let topology = &cluster.status.as_ref()?.topology;
    let shard = topology
        .iter()
        .find(|one| u32::try_from(one.shard) == Ok(handover.shard.0))?;
    let (node, id) = primary(shard)?;
    (id != handover.from.to_string()).then_some(MemberRef {
        shard: handover.shard,
        node,
    })
}

/// What the operator answered to a request that is not done. A server's refusal is no answer yet: it is asked again.
async fn refusal(at: &Connected, name: &str, since: Timestamp) -> Option<String> {
    let api: Api<Event> = Api::namespaced(at.client.clone(), &at.namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let events = api.list(&about).await.ok()?.items;
    // Events have whole seconds.
    let since = kube_status::whole_seconds(since);
    let failed = events.into_iter().filter(|event| {
        event.reason.as_deref() == Some(ClusterEvent::FailoverFailed.name())
            && happened(event).is_some_and(|at| at >= since)
            && event
                .message
                .as_deref()
                .is_some_and(|words| words.starts_with(FAILOVER_REFUSED))
    });
    failed.max_by_key(happened)?.message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::fixtures;

    #[test]
    fn the_request_names_who_gives_way_and_who_takes_over() {
        let picture = fixtures::healthy();
        let id = format!("{:0<40}", "b0");
        assert_eq!(ask(&picture, 1, None).unwrap().to_string(), format!("1/{id}"));
        for named in ["1", "1-1"] {
            assert_eq!(
                ask(&picture, 1, Some(named)).unwrap().to_string(),
                format!("1/{id}/1-1")
            );
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_before_anything_is_written() {
        let mut paused = fixtures::healthy();
        paused.cluster.spec.paused = Some(true);
        let mut asked = fixtures::healthy();
        asked
            .cluster
            .annotations_mut()
            .insert(FAILOVER.to_owned(), "0/x".to_owned());
        let mut alone = fixtures::healthy();
        alone.nodes.retain(|node| node.spec.node == 0);
        alone.pods.clear();
        alone.servers.clear();
        for shard in &mut alone.cluster.status.as_mut().unwrap().topology {
            shard.members.truncate(1);
        }
        let table = [
            (fixtures::healthy(), 7, None, "shop has no shard 7; its shards: 0 to 2"),
            (
                fixtures::healthy(),
                1,
                Some("1-0"),
                "member 1-0 is the primary of shard 1 already; its replicas: 1-1",
            ),
            (
                fixtures::healthy(),
                1,
                Some("2-1"),
                "shard 1 has no replica 2-1; its replicas: 1-1",
            ),
            (
                fixtures::healthy(),
                1,
                Some("x"),
                "--to x: \"x\" names no member: expected shard and place, such as 0-1",
            ),
            (paused, 1, None, "shop is paused: the operator changes nothing"),
            (asked, 1, None, "a failover is asked for already and not done yet (0/x)"),
            (alone, 1, None, "shard 1 of shop has no replica that could take over"),
            (fixtures::no_operator(), 1, None, "No operator has been alive for 5m10s"),
            (fixtures::unseen(), 1, None, "shop has no shard 1; its shards: none yet"),
        ];
        for (picture, shard, to, words) in table {
            let refused = ask(&picture, shard, to).unwrap_err();
            assert!(refused.starts_with(words), "{refused:?} instead of {words:?}");
        }
    }

    #[test]
    fn a_replica_that_is_behind_takes_over_from_nobody() {
        let mut picture = fixtures::healthy();
        let node = picture
            .nodes
            .iter_mut()
            .find(|node| (node.spec.shard, node.spec.node) == (1, 1))
            .unwrap();
        let status = node.status.as_mut().unwrap();
        status.ready = false;
        let behind = fixtures::condition("Ready", "False", "NotInSync", "", fixtures::NOW, "Warning");
        status.conditions[0] = serde_json::from_value(behind).unwrap();
        let words =
            "shard 1 of shop has no replica in sync: 1-1 is NotInSync\nSee what is done about it: candor status shop";
        assert_eq!(ask(&picture, 1, None).unwrap_err(), words);
        let named = "member 1-1 is not in sync (NotInSync): it would lose writes";
        assert_eq!(ask(&picture, 1, Some("1-1")).unwrap_err(), named);
    }
}
