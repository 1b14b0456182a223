//! The link over real sockets: how fast the operator notices what Robin does, and what it accepts from whom.

mod frames;
mod rotation;
mod strangers;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use candor_engine::observation::{Facts, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use valkey_admin::{ClusterNodes, NodeId};

use super::super::Tokens;
use super::serve::route;
use super::*;
use crate::kinds::redkey::objects::RobinCredentials;
use crate::monitor::ClusterKey;

pub(super) fn credentials() -> RobinCredentials {
    RobinCredentials::generate("c", &ring::rand::SystemRandom::new()).unwrap()
}

fn key() -> ClusterKey {
    ClusterKey {
        kind: crate::monitor::ClusterKind::Redkey,
        namespace: "shop".to_owned(),
        name: "c".to_owned(),
    }
}

/// A frame with one server that holds this many keys and reports this state.
pub(super) fn frame(ok: bool, keys: u64) -> Frame {
    let id: NodeId = "07c37dfeb235213a872192d90877d0cd55635b91".parse().unwrap();
    let map = ClusterNodes::parse(&format!(
        "{id} 10.0.0.1:6379@16379 myself,master - 7 8 1 connected 0-5460"
    ));
    let facts = Facts {
        ok,
        keys,
        ..Facts::new(id, map.unwrap())
    };
    let observed = ObservedServer {
        pod_uid: "u0".to_owned(),
        ip: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
        server: Server::Up(Box::new(facts)),
        trouble: None,
        rejects_login: false,
    };
    Frame::new(BTreeMap::from([(0, observed)]))
}

/// A Robin that ends when it is dropped.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    pub(super) feed: Feed,
    pub(super) identity: Identity,
    pub(super) tokens: Arc<Mutex<Tokens>>,
    /// How often an operator has asked for a new observation.
    refreshed: watch::Receiver<u32>,
    tasks: Vec<JoinHandle<()>>,
}

impl Served {
    pub(super) async fn at(address: SocketAddr, credentials: &RobinCredentials) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity::new(&credentials.certificate, &credentials.private_key).unwrap();
        let feed = Feed::default();
        let tokens = Arc::new(Mutex::new(Tokens::new([credentials.token.as_str()])));
        let current = tokens.clone();
        let router = route(feed.clone(), move || current.lock().unwrap().clone());
        let link = LinkListener {
            listener,
            identity: identity.clone(),
        };
        let serving = tokio::spawn(async move { link.serve(router).await.unwrap() });
        let agent = feed.clone();
        let (refreshes, refreshed) = watch::channel(0);
        let refreshing = tokio::spawn(async move {
            loop {
                agent.refresh_requested().await;
                agent.observed_again();
                refreshes.send_modify(|count| *count += 1);
            }
        });
        let agent = feed.clone();
        let progress = tokio::spawn(async move {
            loop {
                agent.progress();
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        Self {
            address,
            feed,
            identity,
            tokens,
            refreshed,
            tasks: vec![serving, refreshing, progress],
        }
    }

    pub(super) async fn start(credentials: &RobinCredentials) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), credentials).await
    }

    pub(super) fn endpoint(&self, credentials: &RobinCredentials) -> RobinEndpoint {
        RobinEndpoint {
            address: self.address,
            ..RobinEndpoint::new(self.address.ip(), credentials).unwrap()
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// An operator that follows one Robin.
pub(super) struct Operator {
    pub(super) links: RobinLinks,
    pub(super) triggers: UnboundedReceiver<ClusterKey>,
}

impl Operator {
    pub(super) fn following(endpoint: RobinEndpoint) -> Self {
        let (sender, triggers) = unbounded_channel();
        let links = RobinLinks::new(sender);
        links.follow(&key(), Some(endpoint));
        Self { links, triggers }
    }

    pub(super) fn view(&self) -> RobinView {
        self.links.view(&key())
    }

    pub(super) fn follow(&self, endpoint: RobinEndpoint) {
        self.links.follow(&key(), Some(endpoint));
    }

    /// Waits for a trigger after which the condition holds, and returns how long that took.
    pub(super) async fn until(&mut self, what: &str, within: Duration, so: impl Fn(&RobinView) -> bool) -> Duration {
        let begun = Instant::now();
        while !so(&self.view()) {
            let left = within.saturating_sub(begun.elapsed());
            let triggered = timeout(left, self.triggers.recv()).await;
            assert!(triggered.is_ok(), "not {what} within {within:?}: {:?}", self.view());
        }
        begun.elapsed()
    }

    pub(super) async fn live(&mut self) -> Duration {
        self.until("live", Duration::from_secs(10), live).await
    }

    /// Whether a trigger arrives within a time.
    pub(super) async fn triggered(&mut self, within: Duration) -> bool {
        while self.triggers.try_recv().is_ok() {}
        timeout(within, self.triggers.recv()).await.is_ok()
    }
}

pub(super) fn live(view: &RobinView) -> bool {
    matches!(view, RobinView::Live { .. })
}

fn silent(view: &RobinView) -> bool {
    matches!(view, RobinView::Silent { .. })
}

fn refused(view: &RobinView) -> bool {
    matches!(view, RobinView::Refused { .. })
}

fn keys(view: &RobinView) -> Option<u64> {
    let RobinView::Live { frame, .. } = view else {
        return None;
    };
    match &frame.servers.get(&0)?.server {
        Server::Up(facts) => Some(facts.keys),
        _ => None,
    }
}

fn ok(view: &RobinView) -> bool {
    let RobinView::Live { frame, .. } = view else {
        return false;
    };
    matches!(frame.servers.get(&0).map(|one| &one.server), Some(Server::Up(facts)) if facts.ok)
}

#[tokio::test]
async fn a_change_reaches_the_operator_within_a_tenth_of_a_second() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(false, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&credentials));
    operator.live().await;
    for round in 0..20 {
        let now = round % 2 == 0;
        robin.feed.publish(&frame(now, 1), Instant::now()).unwrap();
        let took = operator
            .until("changed", Duration::from_secs(5), |view| ok(view) == now)
            .await;
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    operator.links.forget(&key());
    assert!(matches!(operator.view(), RobinView::NotFollowed));
}

#[tokio::test]
async fn heartbeats_keep_it_live_and_trigger_nothing() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&credentials));
    operator.live().await;
    assert!(!operator.triggered(SILENCE + HEARTBEAT).await);
    let RobinView::Live { received, .. } = operator.view() else {
        panic!("{:?}", operator.view());
    };
    assert!(received.elapsed() < SILENCE);
    // Counts always change: the newest are known, and they trigger nothing.
    robin.feed.publish(&frame(true, 2), Instant::now()).unwrap();
    assert!(!operator.triggered(Duration::from_millis(500)).await);
    assert_eq!(keys(&operator.view()), Some(2));
}

#[tokio::test]
async fn a_robin_that_has_observed_nothing_yet_is_connecting_however_long_it_takes() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    let mut operator = Operator::following(robin.endpoint(&credentials));
    assert!(!operator.triggered(SILENCE + HEARTBEAT).await);
    assert!(matches!(operator.view(), RobinView::Connecting { .. }));
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let took = operator.live().await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test]
async fn an_agent_that_makes_no_progress_is_silent_although_its_process_runs() {
    let credentials = credentials();
    let mut robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&credentials));
    operator.live().await;
    robin.tasks.pop().unwrap().abort();
    operator.until("silent", Duration::from_secs(10), silent).await;
    robin.feed.progress();
    operator.live().await;
}

#[tokio::test]
async fn a_killed_robin_is_refused_and_live_again_when_it_is_back() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let (address, endpoint) = (robin.address, robin.endpoint(&credentials));
    let mut operator = Operator::following(endpoint);
    operator.live().await;
    drop(robin);
    let took = operator.until("refused", Duration::from_secs(2), refused).await;
    println!("killed: refused after {took:?}");
    assert!(took < Duration::from_millis(500), "{took:?}");
    let robin = Served::at(address, &credentials).await;
    robin.feed.publish(&frame(true, 7), Instant::now()).unwrap();
    let took = operator.live().await;
    println!("restarted: live after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(keys(&operator.view()), Some(7));
}

#[tokio::test]
async fn a_robin_that_never_listened_is_connecting_and_found_soon_after_it_starts() {
    let credentials = credentials();
    let reserved = Served::start(&credentials).await;
    let (address, endpoint) = (reserved.address, reserved.endpoint(&credentials));
    drop(reserved);
    let mut operator = Operator::following(endpoint);
    assert!(!operator.triggered(SILENCE * 2).await);
    assert!(matches!(operator.view(), RobinView::Connecting { .. }));
    let robin = Served::at(address, &credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let took = operator.live().await;
    assert!(took < Duration::from_millis(500), "{took:?}");
}

/// Forwards bytes until it is frozen: like a process that is stopped, it keeps every connection and accepts more.
async fn freezable(target: SocketAddr) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (freeze, frozen) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut frozen = frozen.clone();
            tokio::spawn(async move {
                if frozen.wait_for(|frozen| !frozen).await.is_err() {
                    return;
                }
                let mut far = TcpStream::connect(target).await.unwrap();
                let (mut up, mut down) = ([0; 4096], [0; 4096]);
                loop {
                    if frozen.wait_for(|frozen| !frozen).await.is_err() {
                        return;
                    }
                    tokio::select! {
                        _ = frozen.changed() => {}
                        read = near.read(&mut up) => match read {
                            Ok(count) if count > 0 => far.write_all(&up[..count]).await.unwrap(),
                            _ => return,
                        },
                        read = far.read(&mut down) => match read {
                            Ok(count) if count > 0 => near.write_all(&down[..count]).await.unwrap(),
                            _ => return,
                        },
                    }
                }
            });
        }
    });
    (address, freeze)
}

#[tokio::test]
async fn a_frozen_robin_is_silent_within_two_seconds_and_live_at_once_when_it_resumes() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let (address, freeze) = freezable(robin.address).await;
    let mut operator = Operator::following(RobinEndpoint {
        address,
        ..robin.endpoint(&credentials)
    });
    operator.live().await;
    for _ in 0..2 {
        freeze.send(true).unwrap();
        let took = operator.until("silent", Duration::from_secs(3), silent).await;
        println!("frozen: silent after {took:?}");
        assert!(took <= SILENCE + Duration::from_millis(100), "{took:?}");
        assert!(matches!(operator.view(), RobinView::Silent { last: Some(_), .. }));
        freeze.send(false).unwrap();
        let took = operator.live().await;
        println!("resumed: live after {took:?}");
        assert!(took < Duration::from_millis(1500), "{took:?}");
    }
    // A freeze that lasts: connections are replaced, and it stays silent.
    freeze.send(true).unwrap();
    operator.until("silent", Duration::from_secs(3), silent).await;
    assert!(!operator.triggered(Duration::from_secs(7)).await);
    assert!(matches!(operator.view(), RobinView::Silent { last: Some(_), .. }));
    freeze.send(false).unwrap();
    operator.live().await;
}

#[tokio::test]
async fn the_operator_can_ask_for_a_new_observation() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&credentials));
    operator.live().await;
    let mut refreshed = robin.refreshed.clone();
    refreshed.mark_unchanged();
    for _ in 0..3 {
        operator.links.refresh(&key());
        let asked = timeout(Duration::from_secs(1), refreshed.changed()).await;
        assert!(asked.is_ok());
    }
    let unasked = timeout(OPERATOR_BEAT * 2, refreshed.changed()).await;
    assert!(unasked.is_err(), "heartbeats ask for nothing");
}

#[tokio::test]
async fn another_address_is_another_robin() {
    let credentials = credentials();
    let (one, other) = (Served::start(&credentials).await, Served::start(&credentials).await);
    one.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(one.endpoint(&credentials));
    operator.live().await;
    operator.follow(other.endpoint(&credentials));
    assert!(matches!(operator.view(), RobinView::Connecting { .. }));
    other.feed.publish(&frame(true, 2), Instant::now()).unwrap();
    operator.live().await;
    assert_eq!(keys(&operator.view()), Some(2));
    operator.links.follow(&key(), None);
    assert!(matches!(operator.view(), RobinView::NotFollowed));
}
