//! The recorder that writes Events, from a background task.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use tokio::sync::Notify;

use super::series::{Backlog, Content, Pending, Reporter, Sent};
use super::{Notice, Recorder};

/// Writes core v1 Events. Clones share one queue and one task, which ends when the last clone is dropped and the
/// queue is empty.
///
/// Recording puts the notice into a queue, bounded for each object, and returns. The task sends one request at a time, each bounded in
/// time and tried twice; what cannot be sent is logged, counted ([`EventPublisher::dropped`]) and forgotten. Needs
/// the rights `create`, `get` and `patch` on `events`.
///
/// ```no_run
/// use kube::Resource;
/// use kube_status::events::{EventPublisher, Notice, Recorder};
/// # async fn run(client: kube::Client, cluster: k8s_openapi::api::core::v1::Node) {
/// let events = EventPublisher::builder("valkeycluster-controller").instance("candor-7d9f").start(client);
/// events.record(&cluster.object_ref(&()), Notice::normal("ClusterReady", "Cluster ready with 3 shards and 1 replicas"));
/// events.flush(std::time::Duration::from_secs(5)).await;
/// # }
/// ```
#[derive(Clone)]
pub struct EventPublisher {
    handle: Arc<Handle>,
}

/// What an [`EventPublisher`] is started with.
///
/// ```
/// use std::time::Duration;
/// use kube_status::events::EventPublisher;
///
/// let builder = EventPublisher::builder("shop-controller").instance("shop-0").request_timeout(Duration::from_secs(1));
/// # let _ = builder;
/// ```
#[must_use = "starts nothing until start is called"]
pub struct EventPublisherBuilder {
    reporter: Reporter,
    request_timeout: Duration,
    room: usize,
    clock: fn() -> Timestamp,
}

/// Series that the task remembers. Forgetting one costs a request when it goes on, never a wrong count.
const REMEMBERED: usize = 4_096;

struct Handle {
    shared: Arc<Shared>,
    clock: fn() -> Timestamp,
}

struct Shared {
    reporter: Reporter,
    state: Mutex<State>,
    work: Notify,
    rest: Notify,
    dropped: AtomicU64,
}

struct State {
    backlog: Backlog,
    sending: bool,
    closed: bool,
}

impl EventPublisher {
    /// Begins a publisher for a component, the name people filter events by.
    ///
    /// ```
    /// let builder = kube_status::events::EventPublisher::builder("shop-controller");
    /// # let _ = builder;
    /// ```
    pub fn builder(component: impl Into<String>) -> EventPublisherBuilder {
        let component = component.into();
        EventPublisherBuilder {
            reporter: Reporter {
                instance: component.clone(),
                component,
            },
            request_timeout: Duration::from_secs(2),
            room: 1_000,
            clock: Timestamp::now,
        }
    }

    /// Waits until everything recorded so far has been sent or given up; `false` when that takes longer than
    /// `within`. For the end of a program, and for tests.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kube_status::events::EventPublisher;
    /// # async fn end(publisher: EventPublisher) {
    /// if !publisher.flush(Duration::from_secs(2)).await {
    ///     eprintln!("some events were not written before the end");
    /// }
    /// # }
    /// ```
    #[must_use = "false means that events may be lost"]
    pub async fn flush(&self, within: Duration) -> bool {
        let shared = &self.handle.shared;
        let rests = async {
            loop {
                let rest = shared.rest.notified();
                let mut rest = std::pin::pin!(rest);
                // Registered before the look, so that a rest between look and wait is not missed.
                rest.as_mut().enable();
                let idle = {
                    let state = shared.lock();
                    state.backlog.is_empty() && !state.sending
                };
                if idle {
                    return;
                }
                rest.await;
            }
        };
        tokio::time::timeout(within, rests).await.is_ok()
    }

    /// How many notices could not be published so far, for a metric.
    ///
    /// ```
    /// # use kube_status::events::EventPublisher;
    /// # fn watch(publisher: &EventPublisher) {
    /// if publisher.dropped() > 0 {
    ///     eprintln!("{} events were not written", publisher.dropped());
    /// }
    /// # }
    /// ```
    pub fn dropped(&self) -> u64 {
        self.handle.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder for EventPublisher {
    fn record(&self, about: &ObjectReference, notice: Notice) {
        let shared = &self.handle.shared;
        let content = Content::of(&shared.reporter, about, &notice);
        let taken = shared.lock().backlog.add(content, about, notice, (self.handle.clock)());
        if taken {
            shared.work.notify_one();
        } else {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(object = ?about.name, "event dropped: too many of this object wait to be sent");
        }
    }
}

impl EventPublisherBuilder {
    /// The process that reports, such as the pod's name; the component's name if not given.
    ///
    /// ```
    /// use kube_status::events::EventPublisher;
    /// let builder = EventPublisher::builder("shop-controller").instance("shop-0");
    /// # let _ = builder;
    /// ```
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.reporter.instance = instance.into();
        self
    }

    /// How long one request may take; 2 s if not given.
    ///
    /// ```
    /// use kube_status::events::EventPublisher;
    /// let builder = EventPublisher::builder("shop-controller").request_timeout(std::time::Duration::from_secs(1));
    /// # let _ = builder;
    /// ```
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self {
            request_timeout,
            ..self
        }
    }

    /// How many distinct events of one object may wait; 1,000 if not given.
    ///
    /// ```
    /// use kube_status::events::EventPublisher;
    /// let builder = EventPublisher::builder("shop-controller").room(100);
    /// # let _ = builder;
    /// ```
    pub fn room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// Where the time comes from; the system's clock if not given.
    ///
    /// ```
    /// use kube_status::events::EventPublisher;
    /// let builder = EventPublisher::builder("shop-controller").clock(jiff::Timestamp::now);
    /// # let _ = builder;
    /// ```
    pub fn clock(self, clock: fn() -> Timestamp) -> Self {
        Self { clock, ..self }
    }

    /// Starts the task. Must be called inside a tokio runtime.
    ///
    /// ```no_run
    /// # async fn run(client: kube::Client) {
    /// let publisher = kube_status::events::EventPublisher::builder("shop-controller").start(client);
    /// # let _ = publisher;
    /// # }
    /// ```
    pub fn start(self, client: Client) -> EventPublisher {
        let shared = Arc::new(Shared {
            reporter: self.reporter,
            state: Mutex::new(State {
                backlog: Backlog::new(self.room),
                sending: false,
                closed: false,
            }),
            work: Notify::new(),
            rest: Notify::new(),
            dropped: AtomicU64::new(0),
        });
        let task = Task {
            shared: shared.clone(),
            client,
            request_timeout: self.request_timeout,
            known: BTreeMap::new(),
            order: VecDeque::new(),
        };
        tokio::spawn(task.run());
        EventPublisher {
            handle: Arc::new(Handle {
                shared,
                clock: self.clock,
            }),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Task {
    shared: Arc<Shared>,
    client: Client,
    request_timeout: Duration,
    known: BTreeMap<Content, Sent>,
    order: VecDeque<Content>,
}

impl Task {
    async fn run(mut self) {
        loop {
            let (batch, closed) = {
                let mut state = self.shared.lock();
                let batch = state.backlog.take();
                state.sending = !batch.is_empty();
                (batch, state.closed)
            };
            if batch.is_empty() {
                self.shared.rest.notify_waiters();
                if closed {
                    return;
                }
                self.shared.work.notified().await;
            }
            for pending in batch {
                self.publish(&pending).await;
            }
        }
    }

    async fn publish(&mut self, pending: &Pending) {
        let mut problem = String::new();
        for _ in 0..2 {
            let before = self.known.get(&pending.content).copied();
            match tokio::time::timeout(self.request_timeout, self.send(pending, before)).await {
                Ok(Ok(sent)) => return self.remember(pending.content, sent),
                Ok(Err(error)) if is_final(&error) => {
                    problem = error.to_string();
                    break;
                }
                Ok(Err(error)) => problem = error.to_string(),
                Err(_) => problem = format!("no answer within {:?}", self.request_timeout),
            }
        }
        let times = u64::try_from(pending.times).unwrap_or(0);
        self.shared.dropped.fetch_add(times, Ordering::Relaxed);
        tracing::warn!(object = ?pending.about.name, reason = pending.notice.reason, problem, "event not published");
    }

    async fn send(&self, pending: &Pending, before: Option<Sent>) -> Result<Sent, Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), pending.namespace());
        let sent = pending.after(before);
        if before.is_some() {
            match repeat(&api, pending, sent).await {
                // The event has expired (after an hour, usually): the series goes on in a new one.
                Err(error) if is(&error, 404) => {}
                other => return other,
            }
        }
        match api
            .create(&PostParams::default(), &pending.event(&self.shared.reporter, sent))
            .await
        {
            Ok(_) => Ok(sent),
            Err(error) if is(&error, 409) => adopt(&api, pending).await,
            Err(error) => Err(error),
        }
    }

    fn remember(&mut self, content: Content, sent: Sent) {
        if self.known.insert(content, sent).is_none() {
            self.order.push_back(content);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

async fn repeat(api: &Api<Event>, pending: &Pending, sent: Sent) -> Result<Sent, Error> {
    let patch = Patch::Merge(pending.repetition(sent));
    api.patch(&pending.name(), &PatchParams::default(), &patch)
        .await
        .map(|_| sent)
}

/// The event exists already: this component recorded it before a restart, or just now by a request that lost its answer.
/// The latter is recognised by its time and not counted twice.
async fn adopt(api: &Api<Event>, pending: &Pending) -> Result<Sent, Error> {
    let found = api.get(&pending.name()).await?;
    let first = found
        .event_time
        .map(|time| time.0)
        .or(found.first_timestamp.map(|time| time.0));
    let there = Sent {
        count: found.count.unwrap_or(1),
        first: first.unwrap_or(pending.first),
    };
    if there.first.as_microsecond() == pending.first.as_microsecond() && there.count == pending.times {
        return Ok(there);
    }
    repeat(api, pending, pending.after(Some(there))).await
}

fn is(error: &Error, code: u16) -> bool {
    matches!(error, Error::Api(status) if status.code == code)
}

/// A rejection that a retry will not change: no permission, no such namespace, a namespace being deleted, an invalid event.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Api(status) if (400..500).contains(&status.code) && !matches!(status.code, 409 | 429))
}
