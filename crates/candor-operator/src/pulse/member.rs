//! One member's watch: a task that holds one connection, asks on it, and knows at once when it ends.

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

use super::bell::Bell;
use super::following::{Following, LinkLost};
use super::questions::{self, Question, Unusable};
use super::standing::{Known, Standing, locked};
use super::tempo;

/// Who wants to be told everything.
type Asker = oneshot::Sender<Server>;

/// A member that is watched, for as long as this lives.
pub(super) struct Watched {
    endpoint: Endpoint,
    node: Node,
    known: Arc<Mutex<Known>>,
    askers: mpsc::UnboundedSender<Asker>,
    task: JoinHandle<()>,
}

impl Watched {
    /// Begins to watch; what was known of the same address is kept.
    pub(super) fn begin(at: MemberRef, endpoint: Endpoint, bell: Arc<Bell>, before: Option<Self>) -> Self {
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
            bell,
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

    /// Whether its task runs: a task that panicked is replaced by the next reconcile.
    pub(super) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Everything about it, without asking where it is known that nothing would be answered.
    pub(super) fn ask(&self) -> impl Future<Output = Server> + use<> {
        let known = locked(&self.known).standing.server();
        let answer = known.is_none().then(|| {
            let (asker, answer) = oneshot::channel();
            self.askers.send(asker).ok().map(|()| answer)
        });
        async move {
            match (known, answer.flatten()) {
                (Some(server), _) => server,
                // A watch that ended meanwhile knows nothing any more.
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
        known.refused_us && matches!(known.standing, Standing::Silent(_))
    }

    pub(super) fn link_lost(&self) -> Option<LinkLost> {
        locked(&self.known).following.lost()
    }

    /// Whether the process that listened here at an instant was still answering well after it.
    pub(super) fn outlived(&self, instant: Instant) -> bool {
        let known = locked(&self.known);
        known.run_began.is_some_and(|began| began < instant)
            && known.last_answer.is_some_and(|last| last > instant + tempo::SILENCE)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task's own side.
struct Watch {
    at: MemberRef,
    endpoint: Endpoint,
    node: Node,
    known: Arc<Mutex<Known>>,
    bell: Arc<Bell>,
    asked: mpsc::UnboundedReceiver<Asker>,
    /// Asked before the question that is under way was sent.
    waiting: Vec<Asker>,
    /// Asked since: they get the next answer.
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
            // After a conversation what follows is a new trouble; where conversations are cut short again and again,
            // a breath is taken between them.
            match self.known().last_answer {
                Some(last) if last > begun + tempo::SILENCE => failures = 0,
                Some(last) if last > begun => failures = failures.min(1),
                _ => {}
            }
            if failures == 0 {
                failing = Instant::now();
            }
            let closed = matches!(error, NodeError::Closed(..));
            if closed && failing.elapsed() < tempo::SILENCE {
                self.cut();
            } else {
                self.settle(&error);
            }
            let pause = if closed { failures } else { failures.max(1) };
            failures += 1;
            self.wait(tempo::again(pause, failing.elapsed())).await;
        }
    }

    async fn open(&mut self, failures: u32) -> Result<Wire, NodeError> {
        let within = if failures == 1 {
            tempo::RECONNECT
        } else {
            tempo::CONNECT
        };
        let stream = Wire::reach(self.endpoint.address, within).await?;
        self.known().listened = true;
        Wire::greet(stream, &self.endpoint, within).await
    }

    /// The connection ended. What that means is known when the next one is made or refused.
    fn cut(&mut self) {
        let mut known = self.known();
        if matches!(known.standing, Standing::Up) {
            known.standing = Standing::Between;
        }
        drop(known);
        // What acts must not find out by a failure; and nobody waits here for a connection that it is making.
        let node = self.node.clone();
        tokio::spawn(async move { node.disconnect().await });
    }

    /// What a failure proves.
    fn settle(&mut self, error: &NodeError) {
        let mut known = self.known();
        let now = Timestamp::now();
        let standing = match (error, &known.standing) {
            (NodeError::Refused(_), Standing::Dead(since)) => Standing::Dead(*since),
            (NodeError::Refused(_), _) if known.listened => Standing::Dead(now),
            (NodeError::Refused(_), _) => Standing::Nowhere,
            (_, Standing::Silent(since)) => Standing::Silent(*since),
            (..) => Standing::Silent(now),
        };
        let news = !matches!(
            (&known.standing, &standing),
            (Standing::Dead(_), Standing::Dead(_))
                | (Standing::Silent(_), Standing::Silent(_))
                // Not up yet is what was expected of a member that has just got its address.
                | (Standing::New | Standing::Nowhere, Standing::Nowhere)
        );
        // Silence says nothing about a spec: only who speaks can refuse it.
        let trouble = (!error.is_unheard()).then(|| error.to_string());
        if trouble.is_some() && trouble != known.trouble {
            let (cluster, member) = (self.bell.cluster(), self.at);
            let (namespace, name) = (&cluster.namespace, &cluster.name);
            tracing::warn!(namespace, name, %member, %error, "no usable reply from member");
        }
        known.trouble = trouble;
        known.refused_us = matches!(error, NodeError::Credentials(..));
        known.standing = standing;
        drop(known);
        if news {
            self.bell.ring();
        }
        self.tell_standing();
    }

    /// Waits before the next try; who asks meanwhile is told how the member stands.
    async fn wait(&mut self, pause: std::time::Duration) {
        let until = Instant::now() + pause;
        while let Ok(asker) = timeout_at(until, self.asked.recv()).await {
            // The handle is gone, and this task with it.
            let Some(asker) = asker else { return };
            self.late.push(asker);
            self.tell_standing();
        }
    }

    /// Asks and notices until the connection ends, and says why it ended.
    async fn converse(&mut self, mut wire: Wire) -> NodeError {
        // A process that is new has followed nobody yet; one that is not tells by itself how it stands.
        self.known().following = Following::default();
        let mut pushes = false;
        let mut question: &Question = &questions::WHOLE;
        let mut alert = self.bell.alert();
        loop {
            let sent = Instant::now();
            let replies = match self.answers(&mut wire, question, sent).await {
                Ok(replies) => replies,
                Err(error) => return error,
            };
            let heard = if question.answers > questions::BEAT.answers {
                self.heard_all(replies)
            } else {
                self.heard_beat(&replies)
            };
            match heard {
                Ok(told) => pushes = told.unwrap_or(pushes),
                Err(words) => return NodeError::Server(self.endpoint.address, "pulse".to_owned(), words),
            }
            let whole: &Question = if pushes {
                &questions::WHOLE_OF_PUSHING
            } else {
                &questions::WHOLE
            };
            question = match self.idle(&mut wire, sent, &mut alert).await {
                Ok(Next::Beat) => &questions::BEAT,
                Ok(Next::Whole) => whole,
                Err(error) => return error,
            };
        }
    }

    /// The answers to one question. After a second without them the member is silent; they are still waited for, and
    /// a frozen process that goes on is heard at once.
    async fn answers(&mut self, wire: &mut Wire, question: &Question, sent: Instant) -> Result<Vec<Reply>, NodeError> {
        let address = self.endpoint.address;
        let silent = || NodeError::Silent(address, "pulse".to_owned());
        let give_up = sent + tempo::PATIENCE;
        let sending = timeout_at(sent + tempo::SILENCE, wire.send(&question.packed)).await;
        sending.map_err(|_| silent())??;
        let mut replies = Vec::with_capacity(question.answers);
        let mut deadline = sent + tempo::SILENCE;
        while replies.len() < question.answers {
            tokio::select! {
                biased;
                reply = wire.next() => replies.push(reply?),
                Some(asker) = self.asked.recv() => {
                    self.late.push(asker);
                    self.tell_standing();
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

    /// A beat's answers; an error is what makes them useless.
    fn heard_beat(&mut self, replies: &[Reply]) -> Result<Option<bool>, String> {
        let mut known = self.known();
        let known = &mut *known;
        let outline = known.outline.next(replies, &mut known.following, Instant::now());
        let outline = outline.map_err(|(Unusable::Busy(words) | Unusable::Wrong(words))| words)?;
        let changed = known.outline != outline || !matches!(known.standing, Standing::Up);
        known.outline = outline;
        (known.standing, known.trouble) = (Standing::Up, None);
        if changed {
            self.bell.ring();
        }
        Ok(None)
    }

    /// The answers to everything; says whether the server pushes slots.
    fn heard_all(&mut self, replies: Vec<Reply>) -> Result<Option<bool>, String> {
        let shared = self.known.clone();
        let mut known = locked(&shared);
        let known = &mut *known;
        let outline = known.outline.next(&replies, &mut known.following, Instant::now());
        let outline = outline.map_err(|(Unusable::Busy(words) | Unusable::Wrong(words))| words)?;
        let facts = match questions::facts(&replies, &mut known.following) {
            Ok(facts) => {
                known.told = replies;
                facts
            }
            // It lives: what it said last stands, while it is the same process.
            Err(Unusable::Busy(words)) if matches!(known.standing, Standing::Up) && !known.told.is_empty() => {
                let last = questions::facts(&known.told, &mut known.following.clone());
                let mut facts = last.map_err(|(Unusable::Busy(words) | Unusable::Wrong(words))| words)?;
                facts.loading |= words.starts_with("LOADING");
                facts
            }
            Err(Unusable::Busy(words) | Unusable::Wrong(words)) => return Err(words),
        };
        let same_run = known.run_id == facts.run_id;
        if !same_run {
            known.run_began = Some(Instant::now());
        }
        let stood = matches!(known.standing, Standing::Up | Standing::Between);
        let changed = known.outline != outline || !same_run || !stood;
        known.outline = outline;
        (known.standing, known.trouble) = (Standing::Up, None);
        let pushes = facts
            .version
            .map(|version| Capabilities::of(version).moves == MoveBy::Push);
        known.run_id.clone_from(&facts.run_id);
        let told = !self.waiting.is_empty();
        for asker in self.waiting.drain(..) {
            let _ = asker.send(Server::Up(facts.clone()));
        }
        match (changed, told) {
            (true, false) => self.bell.ring(),
            // Whoever asked knows it now; the others of the cluster are still worth a closer look.
            (true, true) => self.bell.be_alert(),
            (false, _) => {}
        }
        Ok(pushes)
    }

    /// Nothing is asked: waits for the next beat, for somebody to ask, or for the connection's end.
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
            let pace = if *alert.borrow_and_update() > Instant::now() {
                tempo::ALERT_BEAT
            } else {
                tempo::BEAT
            };
            let mut beat = pin!(sleep_until(sent + pace));
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
                () = &mut beat => return Ok(Next::Beat),
                Ok(()) = alert.changed() => {}
            }
        }
    }

    /// Ends the connection for acting when nobody acted for a while.
    fn rest(&self) {
        let idle = self.known().acted.take_if(|acted| acted.elapsed() > tempo::IDLE);
        if idle.is_some() {
            let node = self.node.clone();
            tokio::spawn(async move { node.disconnect().await });
        }
    }

    /// Tells who waits how the member stands, where that is certain.
    fn tell_standing(&mut self) {
        let Some(server) = self.known().standing.server() else {
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

/// What to ask next.
enum Next {
    Beat,
    Whole,
}
