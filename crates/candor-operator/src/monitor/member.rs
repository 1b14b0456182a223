//! Monitors one member: a task that holds one connection, sends probes on it, and notices immediately when it closes.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use candor_engine::model::MemberRef;
use candor_engine::observation::Server;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};
use valkey_admin::Reply;
use valkey_admin::capability::{Capabilities, MoveBy};
use valkey_admin::client::{Deadlines, Endpoint, Node, NodeError, Wire};

use super::following::{Following, LinkLost};
use super::questions::{self, Question, Unusable};
use super::reachability::{Known, Reachability, locked};
use super::timing;
use super::trigger::Trigger;

/// A caller that waits for a full observation.
type Asker = oneshot::Sender<Server>;

/// A monitored member. Dropping it stops the monitoring.
pub(super) struct Watched {
    endpoint: Endpoint,
    node: Node,
    known: Arc<Mutex<Known>>,
    askers: mpsc::UnboundedSender<Asker>,
    task: JoinHandle<()>,
}

impl Watched {
    /// Starts monitoring. State that is known about the same address is retained.
    pub(super) fn begin(at: MemberRef, endpoint: Endpoint, trigger: Arc<Trigger>, before: Option<Self>) -> Self {
        let before = before.filter(|before| before.endpoint.address == endpoint.address);
        let known = before.as_ref().map(|before| before.known.clone()).unwrap_or_default();
        drop(before);
        let (askers, asked) = mpsc::unbounded_channel();
        let node = Node::new(endpoint.clone(), Deadlines::default());
        let watch = Watch {
            at,
            endpoint: endpoint.clone(),
            node: node.clone(),
            known: known.clone(),
            trigger,
            asked,
            waiting: Vec::new(),
            late: Vec::new(),
        };
        Self {
            endpoint,
            node,
            known,
            askers,
            task: tokio::spawn(watch.live()),
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether its task is running. The next reconcile replaces a task that panicked.
    pub(super) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// A full observation. It does not query a member that is known not to reply.
    pub(super) fn ask(&self) -> impl Future<Output = Server> + use<> {
        let known = locked(&self.known).reachability.server();
        let answer = known.is_none().then(|| {
            let (asker, answer) = oneshot::channel();
            self.askers.send(asker).ok().map(|()| answer)
        });
        async move {
            match (known, answer.flatten()) {
                (Some(server), _) => server,
                // The task ended in the meantime, so nothing is known any more.
                (None, Some(answer)) => answer.await.unwrap_or_default(),
                (None, None) => Server::default(),
            }
        }
    }

    pub(super) fn node(&self) -> Node {
        locked(&self.known).acted = Some(Instant::now());
        self.node.clone()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        locked(&self.known).trouble.clone()
    }

    pub(super) fn refuses_us(&self) -> bool {
        let known = locked(&self.known);
        known.refused_us && matches!(known.reachability, Reachability::Silent(_))
    }

    pub(super) fn link_lost(&self) -> Option<LinkLost> {
        locked(&self.known).following.lost()
    }

    /// What is known about it.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        locked(&self.known)
    }

    /// Whether the process that was running at `instant` still replied well after it.
    pub(super) fn outlived(&self, instant: Instant) -> bool {
        let known = locked(&self.known);
        known.run_began.is_some_and(|began| began < instant)
            && known.last_answer.is_some_and(|last| last > instant + timing::SILENCE)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of the monitoring task.
struct Watch {
    at: MemberRef,
    endpoint: Endpoint,
    node: Node,
    known: Arc<Mutex<Known>>,
    trigger: Arc<Trigger>,
    asked: mpsc::UnboundedReceiver<Asker>,
    /// Callers that asked before the current query was sent.
    waiting: Vec<Asker>,
    /// Callers that asked after it was sent: they get the next reply.
    late: Vec<Asker>,
}

impl Watch {
    async fn live(mut self) {
        let mut failures = 0;
        let mut failing = Instant::now();
        loop {
            let begun = Instant::now();
            let error = match self.open(failures).await {
                Ok(wire) => self.converse(wire).await,
                Err(error) => error,
            };
            // A failure after a long connection counts as the first one. If connections keep closing soon after a
            // reply, the task backs off between them.
            match self.known().last_answer {
                Some(last) if last > begun + timing::SILENCE => failures = 0,
                Some(last) if last > begun => failures = failures.min(1),
                _ => {}
            }
            if failures == 0 {
                failing = Instant::now();
            }
            let closed = matches!(error, NodeError::Closed(..));
            if closed && failing.elapsed() < timing::SILENCE {
                self.cut();
            } else {
                self.settle(&error);
            }
            let pause = if closed { failures } else { failures.max(1) };
            failures += 1;
            self.wait(timing::again(pause, failing.elapsed())).await;
        }
    }

    async fn open(&mut self, failures: u32) -> Result<Wire, NodeError> {
        let within = if failures == 1 {
            timing::RECONNECT
        } else {
            timing::CONNECT
        };
        let stream = Wire::reach(self.endpoint.address, within).await?;
        self.known().listened = true;
        Wire::greet(stream, &self.endpoint, within).await
    }

    /// The connection closed. Whether the member is down is known once the next connection succeeds or is refused.
    fn cut(&mut self) {
        let mut known = self.known();
        if matches!(known.reachability, Reachability::Up) {
            known.reachability = Reachability::Between;
        }
        drop(known);
        // Close the connection for commands too, so that the next command does not fail on it. Do this in a separate
        // task: the connection may just be opening, and the monitor must not wait for it.
        let node = self.node.clone();
        tokio::spawn(async move { node.disconnect().await });
    }

    /// Derives the member's reachability from a failure.
    fn settle(&mut self, error: &NodeError) {
        let mut known = self.known();
        let now = Timestamp::now();
        let reachability = match (error, &known.reachability) {
            (NodeError::ConnectionRefused(_), Reachability::Dead(since)) => Reachability::Dead(*since),
            (NodeError::ConnectionRefused(_), _) if known.listened => Reachability::Dead(now),
            (NodeError::ConnectionRefused(_), _) => Reachability::Nowhere,
            (_, Reachability::Silent(since)) => Reachability::Silent(*since),
            (..) => Reachability::Silent(now),
        };
        let news = !matches!(
            (&known.reachability, &reachability),
            (Reachability::Dead(_), Reachability::Dead(_))
                | (Reachability::Silent(_), Reachability::Silent(_))
                // A member that has just received its address is expected not to listen yet.
                | (Reachability::New | Reachability::Nowhere, Reachability::Nowhere)
        );
        // A timeout is not a rejection: only a reply can reject something.
        let trouble = (!error.is_unanswered()).then(|| error.to_string());
        if trouble.is_some() && trouble != known.trouble {
            let (cluster, member) = (self.trigger.cluster(), self.at);
            let (namespace, name) = (&cluster.namespace, &cluster.name);
            tracing::warn!(namespace, name, %member, %error, "no usable reply from member");
        }
        known.trouble = trouble;
        known.refused_us = matches!(error, NodeError::Credentials(..));
        known.reachability = reachability;
        drop(known);
        if news {
            self.trigger.fire();
        }
        self.report_reachability();
    }

    /// Waits before the next attempt. Callers that ask in the meantime get the current reachability.
    async fn wait(&mut self, pause: std::time::Duration) {
        let until = Instant::now() + pause;
        while let Ok(asker) = timeout_at(until, self.asked.recv()).await {
            // The handle was dropped, and this task is about to be aborted.
            let Some(asker) = asker else { return };
            self.late.push(asker);
            self.report_reachability();
        }
    }

    /// Sends probes until the connection closes, and returns why it closed.
    async fn converse(&mut self, mut wire: Wire) -> NodeError {
        // A new process has not replicated yet. Any other process reports its replication state in its first reply.
        self.known().following = Following::default();
        let mut pushes = false;
        let mut question: &Question = &questions::WHOLE;
        let mut alert = self.trigger.alert();
        loop {
            let sent = Instant::now();
            let replies = match self.answers(&mut wire, question, sent).await {
                Ok(replies) => replies,
                Err(error) => return error,
            };
            let heard = if question.answers > questions::PROBE.answers {
                self.heard_all(replies)
            } else {
                self.on_probe(&replies)
            };
            match heard {
                Ok(told) => pushes = told.unwrap_or(pushes),
                Err(message) => return NodeError::Server(self.endpoint.address, "pulse".to_owned(), message),
            }
            let whole: &Question = if pushes {
                &questions::WHOLE_OF_PUSHING
            } else {
                &questions::WHOLE
            };
            question = match self.idle(&mut wire, sent, &mut alert).await {
                Ok(Next::Probe) => &questions::PROBE,
                Ok(Next::Whole) => whole,
                Err(error) => return error,
            };
        }
    }

    /// Waits for the replies to one query. After a second without a reply the member counts as not responding. The
    /// task still waits for the reply, so that it notices immediately when a frozen process resumes.
    async fn answers(&mut self, wire: &mut Wire, question: &Question, sent: Instant) -> Result<Vec<Reply>, NodeError> {
        let address = self.endpoint.address;
        let silent = || NodeError::Timeout(address, "pulse".to_owned());
        let give_up = sent + timing::PATIENCE;
        let sending = timeout_at(sent + timing::SILENCE, wire.send(&question.packed)).await;
        sending.map_err(|_| silent())??;
        let mut replies = Vec::with_capacity(question.answers);
        let mut deadline = sent + timing::SILENCE;
        while replies.len() < question.answers {
            tokio::select! {
                biased;
                reply = wire.next() => replies.push(reply?),
                Some(asker) = self.asked.recv() => {
                    self.late.push(asker);
                    self.report_reachability();
                }
                () = sleep_until(deadline) => {
                    if Instant::now() >= give_up {
                        return Err(silent());
                    }
                    self.settle(&silent());
                    deadline = give_up;
                }
            }
        }
        self.known().last_answer = Some(Instant::now());
        Ok(replies)
    }

    /// Evaluates the replies to a probe. The error says why they cannot be used.
    fn on_probe(&mut self, replies: &[Reply]) -> Result<Option<bool>, String> {
        let mut known = self.known();
        let known = &mut *known;
        let outline = known.outline.next(replies, &mut known.following, Instant::now());
        let outline = outline.map_err(|(Unusable::Busy(message) | Unusable::Wrong(message))| message)?;
        let changed = known.outline != outline || !matches!(known.reachability, Reachability::Up);
        known.outline = outline;
        known.resume();
        (known.reachability, known.trouble) = (Reachability::Up, None);
        if changed {
            self.trigger.fire();
        }
        Ok(None)
    }

    /// Evaluates the replies to a full query. Returns whether the server migrates slots by pushing them.
    fn heard_all(&mut self, replies: Vec<Reply>) -> Result<Option<bool>, String> {
        let shared = self.known.clone();
        let mut known = locked(&shared);
        let known = &mut *known;
        let outline = known.outline.next(&replies, &mut known.following, Instant::now());
        let outline = outline.map_err(|(Unusable::Busy(message) | Unusable::Wrong(message))| message)?;
        let facts = match questions::facts(&replies, &mut known.following) {
            Ok(facts) => {
                known.told = replies;
                facts
            }
            // The process is alive: its last full reply stays valid as long as it is the same process.
            Err(Unusable::Busy(message))
                if matches!(known.reachability, Reachability::Up) && !known.told.is_empty() =>
            {
                let last = questions::facts(&known.told, &mut known.following.clone());
                let mut facts = last.map_err(|(Unusable::Busy(message) | Unusable::Wrong(message))| message)?;
                facts.loading |= message.starts_with("LOADING");
                facts
            }
            Err(Unusable::Busy(message) | Unusable::Wrong(message)) => return Err(message),
        };
        let same_run = known.run_id == facts.run_id;
        if !same_run {
            known.run_began = Some(Instant::now());
        }
        let stood = matches!(known.reachability, Reachability::Up | Reachability::Between);
        let changed = known.outline != outline || !same_run || !stood;
        known.outline = outline;
        known.resume();
        (known.reachability, known.trouble) = (Reachability::Up, None);
        let pushes = facts
            .version
            .map(|version| Capabilities::of(version).moves == MoveBy::Push);
        known.run_id.clone_from(&facts.run_id);
        let told = !self.waiting.is_empty();
        for asker in self.waiting.drain(..) {
            let _ = asker.send(Server::Up(facts.clone()));
        }
        match (changed, told) {
            (true, false) => self.trigger.fire(),
            // The caller has this change already. The other members of the cluster should still be probed more often.
            (true, true) => self.trigger.be_alert(),
            (false, _) => {}
        }
        Ok(pushes)
    }

    /// Waits for the next probe, for a caller, or for the connection to close.
    async fn idle(
        &mut self,
        wire: &mut Wire,
        sent: Instant,
        alert: &mut tokio::sync::watch::Receiver<Instant>,
    ) -> Result<Next, NodeError> {
        self.waiting.append(&mut self.late);
        if !self.waiting.is_empty() {
            return Ok(Next::Whole);
        }
        self.rest();
        loop {
            let interval = if *alert.borrow_and_update() > Instant::now() {
                timing::ALERT_INTERVAL
            } else {
                timing::INTERVAL
            };
            let mut probe = pin!(sleep_until(sent + interval));
            tokio::select! {
                biased;
                Some(asker) = self.asked.recv() => {
                    self.waiting.push(asker);
                    return Ok(Next::Whole);
                }
                unasked = wire.next() => {
                    unasked?;
                    let message = "sent a reply that was not requested".to_owned();
                    return Err(NodeError::Server(self.endpoint.address, "pulse".to_owned(), message));
                }
                () = &mut probe => return Ok(Next::Probe),
                Ok(()) = alert.changed() => {}
            }
        }
    }

    /// Closes the connection for commands if it has been idle for a while.
    fn rest(&self) {
        let idle = self.known().acted.take_if(|acted| acted.elapsed() > timing::IDLE);
        if idle.is_some() {
            let node = self.node.clone();
            tokio::spawn(async move { node.disconnect().await });
        }
    }

    /// Sends the member's reachability to all waiting callers, if it is certain.
    fn report_reachability(&mut self) {
        let Some(server) = self.known().reachability.server() else {
            return;
        };
        for asker in self.waiting.drain(..).chain(self.late.drain(..)) {
            let _ = asker.send(server.clone());
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        locked(&self.known)
    }
}

/// What to query next.
enum Next {
    Probe,
    Whole,
}
