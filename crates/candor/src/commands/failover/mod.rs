//! `candor failover`: a replica becomes the primary, with the old primary's help. The request is written on the
//! cluster, the operator performs it, and this command waits and reports the result.

mod request;

use std::error::Error;
use std::time::{Duration, Instant};

use candor_api::valkey::FAILOVER_REFUSED;
use candor_api::valkey::events::ClusterEvent;
use candor_api::valkey::status::MemberRole;
use candor_engine::placement::Spread;
use clap::Args;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube_status::Reason;
use serde_json::json;

use super::cluster::answer::Answer;
use super::cluster::fetch::decode;
use super::cluster::{Address, ClusterRef, MemberId, Object};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{print, some};
use super::placement::spread;
use super::requests;
use super::snapshot::{Include, Snapshot, happened};
use super::status::shards::{Member, shards};
pub(super) use request::request;
use request::{Request, primary};

/// After the request is removed, status names the new primary at once, or an event says why there is none.
const REPORTED: Duration = Duration::from_secs(5);

/// How often to look whether the cluster has settled.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A replica becomes the primary of its shard, with the old primary's help: no acknowledged write is lost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor failover shop --shard 1               to the best replica
  candor failover shop --shard 1 --to 1-2      to this member
  candor failover rkcl/shop --shard 1 --to 4   to pod 4 of a RedkeyCluster
  candor failover shop --spread                primaries of several shards, until zones have as many each
  candor failover shop --shard 1 --no-wait     only requests it; the operator performs it when no other operation runs")]
pub struct Failover {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// The shard with the primary to replace.
    #[arg(long, value_name = "N", required_unless_present = "spread", add = super::completion::shards())]
    shard: Option<u32>,
    /// The member to promote, as status shows it; also its place in the shard, or the name of its pod.
    #[arg(long, value_name = "MEMBER", requires = "shard", add = super::completion::members())]
    to: Option<String>,
    /// Spreads primaries that are piled up in one zone: one planned failover after the other.
    #[arg(long, conflicts_with_all = ["shard", "no_wait"])]
    spread: bool,
    /// How many seconds to wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Requests it and does not wait.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    at: Connection,
}

impl Failover {
    /// Requests the failover, waits, and reports the result.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        match self.shard {
            Some(shard) => self.one(&at, &cluster, shard, self.to.as_deref()).await,
            None => Box::pin(self.all(&at, &cluster)).await,
        }
    }

    /// Spreads primaries: one failover, then another look, until none helps.
    async fn all(&self, at: &Connected, cluster: &ClusterRef) -> Result<(), Box<dyn Error>> {
        let mut done = 0;
        loop {
            let snapshot = Snapshot::take(at, cluster, &Include::default()).await?;
            let Some(next) = spread(&shards(&snapshot)).into_iter().next() else {
                let text = match done {
                    0 => "no failover would spread the primaries better".to_owned(),
                    done => format!("{} done; the primaries are spread", some(done, "failover")),
                };
                return print(&format!("{}: {text}.\n", self.name));
            };
            let to = next.to.to_string();
            self.one(at, cluster, next.shard, Some(&to)).await?;
            done += 1;
            let limit = Duration::from_secs(self.timeout);
            if tokio::time::timeout(limit, settled(at, cluster, &next)).await.is_err() {
                return Err(self.overdue(at, cluster).await.into());
            }
        }
    }

    async fn one(
        &self,
        at: &Connected,
        cluster: &ClusterRef,
        shard: u32,
        to: Option<&str>,
    ) -> Result<(), Box<dyn Error>> {
        let snapshot = Snapshot::take(at, cluster, &Include::default()).await?;
        let request = request(&snapshot, shard, to).map_err(CommandError::Usage)?;
        let annotation = cluster.kind.failover_annotation();
        let patch = json!({"metadata": {"annotations": {annotation: request.to_string()}}});
        requests::write(at, cluster, &patch).await?;
        let begun = Instant::now();
        let candidate = request
            .to
            .map_or("the best replica".to_owned(), |to| format!("member {to}"));
        print(&format!(
            "{}: planned failover of shard {shard} to {candidate}.\n",
            self.name
        ))?;
        if self.no_wait {
            return print(&format!("See: candor status {} --watch\n", self.name));
        }
        let limit = Duration::from_secs(self.timeout);
        let primary = match tokio::time::timeout(limit, wait(at, cluster, &request)).await {
            Ok(result) => result?,
            Err(_) => return Err(self.overdue(at, cluster).await.into()),
        };
        print(&format!(
            "Done after {:.1} s: member {primary} is the primary of shard {shard}.\n",
            begun.elapsed().as_secs_f64(),
        ))
    }

    /// It takes longer than the user wants to wait.
    async fn overdue(&self, at: &Connected, cluster: &ClusterRef) -> CommandError {
        let now = Timestamp::now();
        let snapshot = Snapshot::take(at, cluster, &Include::default()).await;
        let sentence = snapshot.map_or_else(
            |error| error.to_string(),
            |snapshot| Answer::of(&snapshot.cluster(), &snapshot.operator, now).text(),
        );
        CommandError::Usage(format!(
            "it is not done after {}. {sentence}\nIt is still requested, and the operator performs it when no other \
             operation runs. Withdraw it with: kubectl annotate {} {} -n {} {}-",
            some(i64::try_from(self.timeout).unwrap_or(i64::MAX), "second"),
            cluster.kind.short(),
            cluster.name,
            at.namespace,
            cluster.kind.failover_annotation()
        ))
    }
}

/// Waits until the cluster is Ready and every object knows the new primary: the next failover is decided by these.
async fn settled(at: &Connected, cluster: &ClusterRef, done: &Spread<MemberId>) {
    loop {
        if let Ok(snapshot) = Snapshot::take(at, cluster, &Include::default()).await {
            let ready = snapshot.cluster().ready() == Some(kube_status::Status::True);
            let primary = |one: &Member| one.member == done.to && one.role == Some(MemberRole::Primary);
            if ready && shards(&snapshot).iter().flat_map(|shard| &shard.members).any(primary) {
                return;
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Waits until the request is answered: the new primary, or why there is none. A watch that breaks is restarted.
async fn wait(at: &Connected, cluster: &ClusterRef, request: &Request) -> Result<MemberId, CommandError> {
    let begun = Timestamp::now();
    let name = &cluster.name;
    let annotation = cluster.kind.failover_annotation();
    let mut changes = std::pin::pin!(watcher::watch_object(at.api(cluster.kind), name).default_backoff());
    let mut answered: Option<tokio::time::Instant> = None;
    loop {
        let until = answered.map(|at| at + REPORTED);
        let change = async {
            match until {
                Some(until) => tokio::time::timeout_at(until, changes.next()).await.ok(),
                None => Some(changes.next().await),
            }
        };
        match change.await {
            Some(Some(Ok(Some(object)))) => {
                let annotations = object.metadata.annotations.as_ref();
                let current = annotations.and_then(|all| all.get(annotation));
                let open = current.is_some_and(|current| *current == request.to_string());
                let object = decode(cluster.kind, object).ok();
                if let Some(primary) = object.and_then(|one| promoted(&one, request)).filter(|_| !open) {
                    return Ok(primary);
                }
                if !open && answered.is_none() {
                    answered = Some(tokio::time::Instant::now());
                    if let Some(message) = rejection(at, name, begun).await {
                        return Err(CommandError::Usage(message));
                    }
                }
            }
            Some(Some(Ok(None))) => return Err(CommandError::Usage(format!("{name} was deleted meanwhile"))),
            // The watch restarts by itself.
            Some(Some(Err(_))) => {}
            Some(None) | None => {
                let message = rejection(at, name, begun).await;
                let message = message.unwrap_or_else(|| {
                    format!("the request was answered, and the primary is still the same\nSee: candor events {name}")
                });
                return Err(CommandError::Usage(message));
            }
        }
    }
}

/// The new primary, once status has it.
fn promoted(object: &Object, request: &Request) -> Option<MemberId> {
    let (member, id) = primary(&object.view(), request.shard)?;
    (id != request.from).then_some(member)
}

/// Why the operator did not perform a request. A server's rejection is no answer yet: the operator retries.
async fn rejection(at: &Connected, name: &str, since: Timestamp) -> Option<String> {
    let api: Api<Event> = Api::namespaced(at.client.clone(), &at.namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let events = api.list(&about).await.ok()?.items;
    // Events have whole seconds.
    let since = kube_status::whole_seconds(since);
    let failed = events.into_iter().filter(|event| {
        // The event has the same name for both kinds.
        event.reason.as_deref() == Some(ClusterEvent::FailoverFailed.name())
            && happened(event).is_some_and(|at| at >= since)
            && event
                .message
                .as_deref()
                .is_some_and(|message| message.starts_with(FAILOVER_REFUSED))
    });
    failed.max_by_key(happened)?.message
}
