//! Observes one member repeatedly over a dedicated connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep_until, timeout};

use crate::auditor::Shared;
use crate::canary::links::dial;
use crate::defect::Observation;
use crate::facts::Facts;
use crate::reach::{Unreached, own_trouble};
use crate::timeline::Happened;

/// A query without a reply for this long counts as not responding; anything below is slowness.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval between two observations, normally and while canaries wait for an owner.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
const SHORT_PAUSE: Duration = Duration::from_millis(15);

/// Observes the member until the task is aborted.
pub(crate) async fn watch(shared: Arc<Shared>, pod: String, address: SocketAddr) {
    let mut connection = None;
    let mut last = None;
    loop {
        let queried = shared.clock.now();
        let begun = Instant::now();
        let observed = match timeout(REPLY_TIMEOUT, query(&shared, address, &mut connection)).await {
            Ok(Ok(facts)) => Observation::Replied(facts),
            Ok(Err(observed)) => observed,
            Err(_) => Observation::Timeout,
        };
        // A defect dates from the moment of the query; a healthy reply dates from now.
        let when = if let Observation::Replied(facts) = &observed {
            shared.routes.claim(address, facts);
            shared.clock.now()
        } else {
            connection = None;
            shared.routes.not_responding(address);
            queried
        };
        if let Observation::Unreached(Unreached::LoginRejected(_)) = &observed {
            shared.rejected.notify_one();
        }
        if last.as_ref() != Some(&observed) {
            let pod = pod.clone();
            shared.timeline.add(
                when,
                Happened::Observed {
                    pod,
                    observed: observed.clone(),
                },
            );
            last = Some(observed);
        }
        let pause = if shared.routes.desired() { SHORT_PAUSE } else { PAUSE };
        sleep_until(begun + pause).await;
    }
}

/// Sends the three queries in one round trip; the error is the observation instead of a reply.
async fn query(
    shared: &Shared,
    address: SocketAddr,
    connection: &mut Option<MultiplexedConnection>,
) -> Result<Facts, Observation> {
    let failed = |error: RedisError| {
        own_trouble(&error).map_or_else(|| Observation::Failed(error.to_string()), Observation::Unreached)
    };
    let mut open = match connection.take() {
        Some(open) => open,
        None => dial(address, &shared.login()).await.map_err(failed)?,
    };
    let mut questions = redis::pipe();
    questions.cmd("INFO").arg("replication");
    questions.cmd("CLUSTER").arg("INFO");
    questions.cmd("CLUSTER").arg("NODES");
    let replies: (String, String, String) = questions.query_async(&mut open).await.map_err(failed)?;
    let facts =
        Facts::read(&replies.0, &replies.1, &replies.2).map_err(|error| Observation::Failed(error.to_string()))?;
    *connection = Some(open);
    Ok(facts)
}
