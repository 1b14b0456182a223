//! Which cluster is looked at next. Never two looks at one cluster at once; a change during a look means another look
//! right after it; a look says itself when the next one is due if nothing changes before.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::cache::ClusterKey;

/// A look: answers when to look again, or nothing when the cluster is gone.
pub type Look = dyn Fn(ClusterKey) -> BoxFuture<'static, Option<Duration>> + Send + Sync;

/// What is known of one cluster's turn.
#[derive(Default)]
struct Turn {
    due: Option<delay_queue::Key>,
    running: bool,
    again: bool,
}

/// Runs looks until told to stop, then waits for those under way.
pub async fn run(mut changes: UnboundedReceiver<ClusterKey>, stop: CancellationToken, look: &Look) {
    let mut turns: HashMap<ClusterKey, Turn> = HashMap::new();
    let mut due: DelayQueue<ClusterKey> = DelayQueue::new();
    let mut looks: JoinSet<(ClusterKey, Option<Duration>)> = JoinSet::new();
    loop {
        let start = tokio::select! {
            () = stop.cancelled() => break,
            Some(key) = changes.recv() => {
                let turn = turns.entry(key.clone()).or_default();
                if let Some(waiting) = turn.due.take() {
                    due.remove(&waiting);
                }
                turn.again |= turn.running;
                (!turn.running).then_some(key)
            }
            Some(expired) = due.next() => {
                let key = expired.into_inner();
                if let Some(turn) = turns.get_mut(&key) {
                    turn.due = None;
                }
                Some(key)
            }
            Some(done) = looks.join_next() => match done {
                Ok((key, next)) => finished(&mut turns, &mut due, key, next),
                // A look that panicked has said so; the next change of its cluster looks again.
                Err(error) => {
                    tracing::error!(%error, "a look ended by itself");
                    None
                }
            },
        };
        if let Some(key) = start {
            turns.entry(key.clone()).or_default().running = true;
            let future = look(key.clone());
            looks.spawn(async move { (key, future.await) });
        }
    }
    while looks.join_next().await.is_some() {}
}

/// A look is over: another one at once if something changed meanwhile, else when it said.
fn finished(
    turns: &mut HashMap<ClusterKey, Turn>,
    due: &mut DelayQueue<ClusterKey>,
    key: ClusterKey,
    next: Option<Duration>,
) -> Option<ClusterKey> {
    let turn = turns.entry(key.clone()).or_default();
    turn.running = false;
    if std::mem::take(&mut turn.again) {
        return Some(key);
    }
    match next {
        Some(after) => {
            turn.due = Some(due.insert(key, after));
        }
        None => {
            turns.remove(&key);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::{Notify, mpsc};

    use super::*;

    fn key(name: &str) -> ClusterKey {
        ClusterKey {
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    #[tokio::test]
    async fn a_change_during_a_look_means_another_look_and_never_two_at_once() {
        let (changed, changes) = mpsc::unbounded_channel();
        let (running, most, looks) = (
            Arc::<AtomicUsize>::default(),
            Arc::<AtomicUsize>::default(),
            Arc::<AtomicUsize>::default(),
        );
        let (begun, go) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let stop = CancellationToken::new();
        let seen = (running.clone(), most.clone(), looks.clone(), begun.clone(), go.clone());
        let look = move |_: ClusterKey| {
            let (running, most, looks, begun, go) = seen.clone();
            let future = async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                begun.notify_one();
                go.notified().await;
                running.fetch_sub(1, Ordering::SeqCst);
                looks.fetch_add(1, Ordering::SeqCst);
                Some(Duration::from_secs(3600))
            };
            Box::pin(future) as BoxFuture<'static, Option<Duration>>
        };
        let queue = tokio::spawn({
            let stop = stop.clone();
            async move { run(changes, stop, &look).await }
        });
        changed.send(key("a")).unwrap();
        begun.notified().await;
        for _ in 0..10 {
            changed.send(key("a")).unwrap();
        }
        // A second cluster shows that all ten have been taken in: the channel keeps their order.
        changed.send(key("b")).unwrap();
        begun.notified().await;
        go.notify_one();
        go.notify_one();
        begun.notified().await;
        go.notify_one();
        stop.cancel();
        queue.await.unwrap();
        assert_eq!(looks.load(Ordering::SeqCst), 3, "a, a again, b");
        assert_eq!(most.load(Ordering::SeqCst), 2, "a and b, never a twice");
    }
}
