//! Gossip: how cluster maps spread, failures are detected, replicas replicate and fail over. One round is what servers send each other in
//! a moment; no round runs while nothing has changed and nothing is due.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use valkey_admin::migrations::{Direction, Progress};
use valkey_admin::{NodeId, SlotSet};

use crate::node::{Follow, Map, Peer, fresh_id};
use crate::world::{Member, Mode, State};

/// What a node says of itself on every message.
struct Header {
    ip: IpAddr,
    id: NodeId,
    shard: NodeId,
    primary: Option<NodeId>,
    slots: SlotSet,
    epoch: u64,
    current_epoch: u64,
    frozen: bool,
    /// The nodes that it knows.
    peers: Vec<(NodeId, IpAddr)>,
    /// The nodes that it suspects.
    suspects: BTreeSet<NodeId>,
}

impl Header {
    fn of(ip: IpAddr, member: &Member) -> Self {
        let map = &member.node.map;
        let known = map.peers.iter().filter(|(_, peer)| !peer.handshake && !peer.no_address);
        Self {
            ip,
            id: map.id,
            shard: map.shard,
            primary: map.primary,
            slots: map.slots.clone(),
            epoch: map.epoch,
            current_epoch: map.current_epoch,
            frozen: member.is(Mode::Frozen),
            peers: known.map(|(id, peer)| (*id, peer.ip)).collect(),
            suspects: map
                .peers
                .iter()
                .filter(|(_, peer)| peer.suspected || peer.failed)
                .map(|(id, _)| *id)
                .collect(),
        }
    }
}

/// What a round did, and when the next one has something to do even if nothing happens.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) changed: bool,
    due: Option<Instant>,
}

impl Round {
    fn due(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// When the next round is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due
    }
}

impl State {
    /// Every member sends its map to every other.
    pub(crate) fn round(&mut self, now: Instant) -> Round {
        let mut round = Round::default();
        let headers: BTreeMap<IpAddr, Header> = self
            .members
            .iter()
            .map(|(ip, one)| (*ip, Header::of(*ip, one)))
            .collect();
        let mut introduced: Vec<(IpAddr, IpAddr)> = Vec::new();
        for (ip, member) in &mut self.members {
            if member.is(Mode::Frozen) {
                continue;
            }
            let node = &mut member.node;
            node.banned.retain(|_, until| *until > now);
            let timeout = Duration::from_millis(node.millis("cluster-node-timeout", 15_000));
            let known: Vec<NodeId> = node.map.peers.keys().copied().collect();
            for id in known {
                receive_gossip(
                    &mut node.map,
                    id,
                    &headers,
                    now,
                    timeout,
                    &mut round,
                    &mut introduced,
                    *ip,
                );
            }
            learn(&mut node.map, &node.banned, &headers, &mut round);
            judge(&mut node.map, &headers, &mut round);
        }
        for (called, caller) in introduced {
            self.introduce(called, &headers[&caller], &mut round);
        }
        let replicas: Vec<IpAddr> = self.members.keys().copied().collect();
        for ip in replicas {
            self.follow(ip, now, &mut round);
            self.elect(ip, now, &mut round);
            self.advance_jobs(ip, now, &mut round);
        }
        round
    }

    /// The one that was met learns who met it.
    fn introduce(&mut self, called: IpAddr, caller: &Header, round: &mut Round) {
        let Some(member) = self.members.get_mut(&called) else {
            return;
        };
        let map = &mut member.node.map;
        if map.id != caller.id && !map.peers.contains_key(&caller.id) {
            map.peers.insert(caller.id, known(caller));
            round.changed = true;
        }
    }

    /// Who runs under an id.
    fn running(&self, id: NodeId) -> Option<(&IpAddr, &Member)> {
        self.members.iter().find(|(_, member)| member.node.map.id == id)
    }

    /// A replica's link.
    fn follow(&mut self, ip: IpAddr, now: Instant, round: &mut Round) {
        let member = &self.members[&ip];
        let Some(primary) = member.node.map.primary.filter(|_| !member.is(Mode::Frozen)) else {
            return;
        };
        let upstream = self.running(primary).filter(|(at, _)| {
            let peer = member.node.map.peers.get(&primary);
            peer.is_some_and(|peer| peer.ip == **at)
        });
        let upstream = upstream.map(|(_, one)| {
            (
                one.is(Mode::Frozen),
                one.node.began,
                one.node.keys.clone(),
                one.node.offset,
            )
        });
        let copy = self.timing.copy;
        let node = &mut self.members.get_mut(&ip).expect("looked at above").node;
        let before = node.follow;
        node.follow = match (before, upstream) {
            (Follow::Up, None) => Follow::Down {
                since: Some(now),
                can_resync: true,
            },
            (Follow::Copying { .. }, None) => {
                (node.offset, node.keys) = (1, BTreeMap::new());
                Follow::Down {
                    since: None,
                    can_resync: false,
                }
            }
            (down, None) => down,
            // A frozen primary keeps its connections.
            (same, Some((true, ..))) => same,
            (Follow::Down { since, can_resync }, Some((false, began, ..))) => {
                if can_resync && since.is_some_and(|since| began < since) {
                    Follow::Up
                } else {
                    Follow::Copying { until: now + copy }
                }
            }
            (Follow::Copying { until }, Some(_)) if until > now => before,
            (Follow::Copying { .. } | Follow::Up, Some((false, _, keys, offset))) => {
                if node.keys != keys {
                    node.keys = keys;
                }
                node.offset = offset;
                Follow::Up
            }
        };
        round.changed |= before != node.follow;
        if let Follow::Copying { until } = node.follow {
            round.due(until);
        }
    }

    /// Whether most owners of slots, as a node sees them, are there to vote.
    pub(crate) fn can_vote(&self, map: &Map) -> bool {
        let voters: Vec<NodeId> = map.owners().map(|(id, _)| id).collect();
        let there = voters.iter().filter(|id| {
            let running = self.running(**id);
            running.is_some_and(|(_, member)| !member.is(Mode::Frozen))
        });
        there.count() * 2 > voters.len()
    }

    /// Starts the election of a replica: its primary failed, or `CLUSTER FAILOVER` requested it.
    fn elect(&mut self, ip: IpAddr, now: Instant, round: &mut Round) {
        let member = &self.members[&ip];
        let node = &member.node;
        let Some(primary) = node.map.primary.filter(|_| !member.is(Mode::Frozen)) else {
            return;
        };
        match node.election {
            None => {
                let has_data = matches!(node.follow, Follow::Up | Follow::Down { can_resync: true, .. });
                let rival = |other: &Member| other.node.map.primary == Some(primary) && other.node.election.is_some();
                if node.map.is_failed(primary)
                    && has_data
                    && self.can_vote(&node.map)
                    && !self.members.values().any(rival)
                {
                    let at = now + self.timing.election;
                    self.members.get_mut(&ip).expect("looked at above").node.election = Some(at);
                    round.due(at);
                }
            }
            Some(at) if at > now => round.due(at),
            Some(_) => {
                if self.can_vote(&node.map) {
                    self.promote(ip);
                } else {
                    self.members.get_mut(&ip).expect("looked at above").node.election = None;
                }
                round.changed = true;
            }
        }
    }

    /// Makes a replica the primary of its shard.
    pub(crate) fn promote(&mut self, ip: IpAddr) {
        let Some(member) = self.members.get_mut(&ip) else {
            return;
        };
        let node = &mut member.node;
        let Some(old) = node.map.primary.take() else { return };
        let map = &mut node.map;
        let slots = map.peers.get(&old).map(|peer| peer.slots.clone()).unwrap_or_default();
        map.current_epoch += 1;
        map.epoch = map.current_epoch;
        let me = map.id;
        map.assign(&slots, me);
        node.election = None;
        node.follow = Follow::Down {
            since: None,
            can_resync: false,
        };
        node.offset += 1;
    }

    /// Migrations that are over.
    fn advance_jobs(&mut self, ip: IpAddr, now: Instant, round: &mut Round) {
        let node = &self.members[&ip].node;
        let running = |job: &&crate::node::Job| job.progress == Progress::Running && job.direction == Direction::Export;
        let jobs: Vec<_> = node.jobs.iter().filter(running).cloned().collect();
        for job in jobs {
            if job.due > now {
                round.due(job.due);
                continue;
            }
            let target = self.running(job.target).filter(|(_, member)| !member.is(Mode::Frozen));
            let target = target.map(|(at, _)| *at).filter(|_| {
                let mine = &self.members[&ip].node.map.slots;
                job.slots.difference(mine).is_empty()
            });
            let (progress, message) = match target {
                Some(at) => {
                    self.transfer_slots(ip, at, &job.slots);
                    (Progress::Success, String::new())
                }
                None => (Progress::Failed, "Connection lost to target".to_owned()),
            };
            for member in [Some(ip), target].into_iter().flatten() {
                let node = &mut self.members.get_mut(&member).expect("both run").node;
                for one in node.jobs.iter_mut().filter(|one| one.name == job.name) {
                    (one.progress, one.message) = (progress, message.clone());
                }
            }
            round.changed = true;
        }
    }

    /// Moves slots with their keys at once.
    pub(crate) fn transfer_slots(&mut self, from: IpAddr, to: IpAddr, slots: &SlotSet) {
        let keys = {
            let source = &mut self.members.get_mut(&from).expect("the caller saw it").node;
            let moved: BTreeMap<u16, u64> = slots
                .iter()
                .filter_map(|slot| Some((slot.get(), source.keys.remove(&slot.get())?)))
                .collect();
            source.offset += 1;
            moved
        };
        let target = &mut self.members.get_mut(&to).expect("the caller saw it").node;
        target.map.current_epoch += 1;
        target.map.epoch = target.map.current_epoch;
        let (id, epoch) = (target.map.id, target.map.epoch);
        target.map.assign(slots, id);
        target.keys.extend(keys);
        target.offset += 1;
        let source = &mut self.members.get_mut(&from).expect("the caller saw it").node;
        source.map.assign(slots, id);
        if let Some(peer) = source.map.peers.get_mut(&id) {
            peer.epoch = epoch;
        }
    }
}

fn known(header: &Header) -> Peer {
    Peer {
        shard: header.shard,
        primary: header.primary,
        epoch: header.epoch,
        linked: true,
        ..Peer::at(header.ip, false)
    }
}

/// Applies the gossip of one known peer to a node's map.
#[allow(clippy::too_many_arguments)] // one step of the round, with all that the round knows
fn receive_gossip(
    map: &mut Map,
    id: NodeId,
    headers: &BTreeMap<IpAddr, Header>,
    now: Instant,
    timeout: Duration,
    round: &mut Round,
    introduced: &mut Vec<(IpAddr, IpAddr)>,
    me: IpAddr,
) {
    let Some(peer) = map.peers.get_mut(&id) else { return };
    let header = headers.get(&peer.ip);
    if peer.handshake {
        match header {
            Some(header) if !header.frozen => {
                map.peers.remove(&id);
                if header.id != map.id {
                    map.peers.entry(header.id).or_insert_with(|| known(header)).ip = header.ip;
                    introduced.push((header.ip, me));
                }
                round.changed = true;
            }
            // No member at the address: the handshake times out.
            _ => match peer.missed {
                None => peer.missed = Some(now),
                Some(since) if since + timeout <= now => {
                    map.peers.remove(&id);
                    round.changed = true;
                }
                Some(since) => round.due(since + timeout),
            },
        }
        return;
    }
    match header {
        Some(header) if header.id == id && !header.frozen => {
            round.changed |= !peer.linked || peer.suspected || peer.failed || peer.no_address;
            (peer.linked, peer.suspected, peer.failed, peer.no_address) = (true, false, false, false);
            peer.missed = None;
            round.changed |= peer.primary != header.primary || peer.epoch != header.epoch;
            (peer.primary, peer.shard, peer.epoch) = (header.primary, header.shard, header.epoch);
            if header.primary.is_some() && !peer.slots.is_empty() {
                peer.slots = SlotSet::new();
                round.changed = true;
            }
            if map.current_epoch < header.current_epoch {
                map.current_epoch = header.current_epoch;
                round.changed = true;
            }
            claim(map, header, round);
        }
        other => {
            let frozen = other.is_some_and(|header| header.id == id);
            let reused = other.is_some_and(|header| header.id != id);
            round.changed |= (peer.linked && !frozen) || (reused && !peer.no_address);
            peer.linked &= frozen;
            peer.no_address |= reused;
            let since = *peer.missed.get_or_insert(now);
            if since + timeout <= now {
                round.changed |= !peer.suspected;
                peer.suspected = true;
            } else {
                round.due(since + timeout);
            }
        }
    }
}

/// A primary says what it owns: the larger epoch is believed.
fn claim(map: &mut Map, header: &Header, round: &mut Round) {
    if header.primary.is_some() || header.slots.is_empty() {
        return;
    }
    // Two primaries with one epoch would never agree: the one with the smaller id takes a new one.
    if map.primary.is_none() && map.epoch == header.epoch && map.id < header.id {
        map.current_epoch += 1;
        map.epoch = map.current_epoch;
        round.changed = true;
    }
    let mut taken = header.slots.difference(&map.covered());
    let mine = map.slots.clone();
    let rivals: Vec<(SlotSet, u64)> = map
        .owners()
        .filter(|(id, _)| *id != header.id)
        .map(|(id, slots)| (slots.clone(), map.peers.get(&id).map_or(map.epoch, |peer| peer.epoch)))
        .collect();
    for (slots, epoch) in rivals {
        if epoch < header.epoch {
            taken = taken.union(&slots.intersection(&header.slots));
        }
    }
    if taken.is_empty() {
        return;
    }
    map.assign(&taken, header.id);
    round.changed = true;
    let emptied = !mine.is_empty() && map.slots.is_empty();
    let orphaned = map.primary.is_some_and(|primary| {
        primary != header.id && map.peers.get(&primary).is_none_or(|peer| peer.slots.is_empty())
    });
    // The new primary of the same shard is replicated; a shard that was emptied by moves is not followed.
    if (emptied || orphaned) && header.shard == map.shard {
        map.primary = Some(header.id);
    }
}

/// Starts handshakes with nodes that its peers know.
fn learn(map: &mut Map, banned: &BTreeMap<NodeId, Instant>, headers: &BTreeMap<IpAddr, Header>, round: &mut Round) {
    let gossiped: Vec<(NodeId, IpAddr)> = map
        .peers
        .iter()
        .filter(|(id, peer)| {
            let header = headers.get(&peer.ip);
            header.is_some_and(|header| header.id == **id && !header.frozen)
        })
        .flat_map(|(_, peer)| headers[&peer.ip].peers.iter().copied())
        .collect();
    for (id, ip) in gossiped {
        let shaking = map.peers.values().any(|peer| peer.handshake && peer.ip == ip);
        let there = headers.get(&ip).is_some_and(|header| header.id == id);
        if id != map.id && !map.peers.contains_key(&id) && !banned.contains_key(&id) && !shaking && there {
            map.peers.insert(fresh_id(), Peer::at(ip, true));
            round.changed = true;
        }
    }
}

/// Suspects that most owners of slots suspect have failed.
fn judge(map: &mut Map, headers: &BTreeMap<IpAddr, Header>, round: &mut Round) {
    let voters: BTreeSet<NodeId> = map.owners().map(|(id, _)| id).collect();
    let suspects: Vec<NodeId> = map
        .peers
        .iter()
        .filter(|(_, peer)| peer.suspected && !peer.failed)
        .map(|(id, _)| *id)
        .collect();
    for id in suspects {
        let votes = headers
            .values()
            .filter(|header| voters.contains(&header.id) && header.suspects.contains(&id));
        if votes.count() * 2 > voters.len()
            && let Some(peer) = map.peers.get_mut(&id)
        {
            peer.failed = true;
            round.changed = true;
        }
    }
}
