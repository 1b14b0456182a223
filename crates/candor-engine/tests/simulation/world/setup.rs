//! Where an exploration starts, and which faults may happen in it.

use std::collections::{BTreeMap, BTreeSet};

use candor_engine::attempts::Attempts;
use candor_engine::memory::Memory;
use jiff::Timestamp;
use valkey_admin::SlotSet;

use super::World;

impl World {
    /// A spec without any objects.
    pub fn new(shards: u32, replicas: u32) -> Self {
        Self {
            shards,
            replicas,
            memory: Memory::default(),
            workloads: BTreeMap::new(),
            processes: BTreeMap::new(),
            lost: SlotSet::new(),
            deaths: 0,
            cuts: 0,
            specs: Vec::new(),
            changes: 0,
            roll: false,
            target: false,
            failures: 0,
            filled: false,
            persistent: false,
            drained: BTreeSet::new(),
            preflight: None,
            held: BTreeSet::new(),
            requests: 0,
            asked: None,
            slips: 0,
            lags: 0,
            late: None,
            unperformed: 0,
            attempts: Attempts::default(),
            secret: false,
            known: false,
            deletions: 0,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// A cluster that was created without faults and has data in every slot.
    pub fn formed(shards: u32, replicas: u32) -> Self {
        let mut world = Self::new(shards, replicas);
        for _ in 0..40 {
            world.turn(.., true);
            world.tick();
        }
        assert!(world.is_as_desired(), "{world:#?}");
        for process in world.processes.values_mut().filter(|process| process.follows.is_none()) {
            process.data = process.slots.clone();
        }
        world.filled = true;
        world.tick();
        world
    }

    /// Every member has a volume.
    pub fn with_volumes(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// Up to this many slot migrations fail, at any moment.
    pub fn with_failures(mut self, failures: u8) -> Self {
        self.failures = failures;
        self
    }

    /// The first shard lacks some slots, and migrations have failed so often that the operator uses the legacy
    /// commands.
    pub fn with_legacy_moves(mut self) -> Self {
        let slots: SlotSet = "8100-8131".parse().unwrap();
        self.give_away(0, 1, &slots);
        self.tick();
        self.memory.attempts = 6;
        self
    }

    pub fn with_deaths(mut self, deaths: u8) -> Self {
        self.deaths = deaths;
        self
    }

    /// Up to this many nodes are partitioned at any moment, and their pods are force-deleted.
    pub fn with_cuts(mut self, cuts: u8) -> Self {
        self.cuts = cuts;
        self
    }

    pub fn with_specs(mut self, specs: &[(u32, u32)], changes: u8) -> Self {
        self.specs = specs.to_vec();
        self.changes = changes;
        self
    }

    pub fn with_roll(mut self) -> Self {
        self.roll = true;
        self
    }

    /// A user requests up to this many failovers, at any moment.
    pub fn with_requests(mut self, requests: u8) -> Self {
        self.requests = requests;
        self
    }

    /// The first of several steps is lost up to this often, at any moment.
    pub fn with_slips(mut self, slips: u8) -> Self {
        self.slips = slips;
        self
    }

    /// Gossip is delayed up to this often: it stops reaching one member at any moment and resumes at any later one.
    pub fn with_lags(mut self, lags: u8) -> Self {
        self.lags = lags;
        self
    }

    /// The Secret with the operator's credentials is deleted up to this often, at any moment.
    pub fn with_deleted_secrets(mut self, deletions: u8) -> Self {
        self.deletions = deletions;
        self
    }

    /// A replica acknowledges a planned failover up to this often without performing it, at any moment.
    pub fn with_unperformed_failovers(mut self, times: u8) -> Self {
        self.unperformed = times;
        self
    }
}
