//! `candor failover`: a replica becomes the primary, with the old primary's help. The request is written on the
//! cluster, the operator performs it, and this command waits and reports the result.

mod request;

use std::error::Error;
use std::time::{Duration, Instant};

use candor_api::valkey::FAILOVER_REFUSED;
use candor_api::valkey::events::ClusterEvent;
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
use super::requests;
use super::snapshot::{Include, Snapshot, happened};
pub(super) use request::request;
use request::{Request, primary};

/// After the request is removed, status names the new primary at once, or an event says why there is none.
const REPORTED: Duration = Duration::from_secs(5);

/// A replica becomes the primary of its shard, with the old primary's help: no acknowledged write is lost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor failover shop --shard 1               to the best replica
  candor failover shop --shard 1 --to 1-2      to this member
  candor failover rkcl/shop --shard 1 --to 4   to pod 4 of a RedkeyCluster
  candor failover shop --shard 1 --no-wait     only requests it; the operator performs it when no other operation runs")]
pub struct Failover {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// The shard with the primary to replace.
    #[arg(long, value_name = "N")]
    shard: u32,
    /// The member to promote, as status shows it; also its place in the shard, or the name of its pod.
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,
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
        let snapshot = Snapshot::take(&at, &cluster, &Include::default()).await?;
        let request = request(&snapshot, self.shard, self.to.as_deref()).map_err(CommandError::Usage)?;
        let annotation = cluster.kind.failover_annotation();
        let patch = json!({"metadata": {"annotations": {annotation: request.to_string()}}});
        requests::write(&at, &cluster, &patch).await?;
        let begun = Instant::now();
        let candidate = request
            .to
            .map_or("the best replica".to_owned(), |to| format!("member {to}"));
        print(&format!(
            "{}: planned failover of shard {} to {candidate}.\n",
            self.name, self.shard
        ))?;
        if self.no_wait {
            return print(&format!("See: candor status {} --watch\n", self.name));
        }
        let limit = Duration::from_secs(self.timeout);
        let primary = match tokio::time::timeout(limit, wait(&at, &cluster, &request)).await {
            Ok(result) => result?,
            Err(_) => return Err(self.overdue(&at, &cluster).await.into()),
        };
        print(&format!(
            "Done after {:.1} s: member {primary} is the primary of shard {}.\n",
            begun.elapsed().as_secs_f64(),
            self.shard
        ))
    }

    /// It takes longer than the user wants to wait.
    async fn overdue(&self, at: &Connected, cluster: &ClusterRef) -> CommandError {
        let now = Timestamp::now();
        let snapshot = Snapshot::take(at, cluster, &Include::default()).await;
        let sentence = snapshot.map_or_else(
            |error| error.to_string(),
            |snapshot| Answer::of(&snapshot.cluster(), &snapshot.operator, now).sentence,
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
