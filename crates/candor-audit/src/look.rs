//! Observes one member repeatedly over a dedicated connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, sleep_until, timeout};

use crate::auditor::Shared;
use crate::canary::links::dial;
use crate::defect::Seen;
use crate::facts::Facts;
use crate::reach::{Unreached, own_trouble};
use crate::timeline::Happened;

/// A query without a reply for this long counts as not responding; anything below is slowness.
const SILENCE: Duration = Duration::from_secs(1);
/// The interval between two observations, normally and while canaries wait for an owner.
const PAUSE: Duration = Duration::from_millis(100);
const SHORT_PAUSE: Duration = Duration::from_millis(15);

/// Observes the member until the task is aborted.
pub(crate) async fn watch(shared: Arc<Shared>, pod: String, address: SocketAddr) {
    let mut connection = None;
    let mut last = None;
    loop {
        let asked = shared.clock.now();
        let begun = Instant::now();
        let seen = match timeout(SILENCE, ask(&shared, address, &mut connection)).await {
            Ok(Ok(facts)) => Seen::Answers(facts),
            Ok(Err(seen)) => seen,
            Err(_) => Seen::Silent,
        };
        // A defect dates from the moment of the query; a healthy reply dates from now.
        let when = if let Seen::Answers(facts) = &seen {
            shared.routes.claim(address, facts);
            shared.clock.now()
        } else {
            connection = None;
            shared.routes.gone(address);
            asked
        };
        if let Seen::Unreached(Unreached::LoginRejected(_)) = &seen {
            shared.rejected.notify_one();
        }
        if last.as_ref() != Some(&seen) {
            let pod = pod.clone();
            shared.timeline.add(
                when,
                Happened::Looked {
                    pod,
                    seen: seen.clone(),
                },
            );
            last = Some(seen);
        }
        let pause = if shared.routes.wanted() { SHORT_PAUSE } else { PAUSE };
        sleep_until(begun + pause).await;
    }
}

/// Sends the three queries in one round trip; the error is the observation instead of a reply.
async fn ask(
    shared: &Shared,
    address: SocketAddr,
    connection: &mut Option<MultiplexedConnection>,
) -> Result<Facts, Seen> {
    let failed =
        |error: RedisError| own_trouble(&error).map_or_else(|| Seen::Refuses(error.to_string()), Seen::Unreached);
    let mut open = match connection.take() {
        Some(open) => open,
        None => dial(address, &shared.login()).await.map_err(failed)?,
    };
    let mut questions = redis::pipe();
    questions.cmd("INFO").arg("replication");
    questions.cmd("CLUSTER").arg("INFO");
    questions.cmd("CLUSTER").arg("NODES");
    let answers: (String, String, String) = questions.query_async(&mut open).await.map_err(failed)?;
    let facts = Facts::read(&answers.0, &answers.1, &answers.2).map_err(|error| Seen::Refuses(error.to_string()))?;
    *connection = Some(open);
    Ok(facts)
}
