//! The plan: a pure function of the desired and the observed state, of what status remembers, of what this process has
//! tried lately, and of the time.
//!
//! A plan holds the steps that can be executed at once; the next reconcile plans the following ones from what it
//! observes then. Which rule comes first is the table [`PRIORITIES`].

mod announce;
mod configure;
mod credentials;
mod data_loss;
mod failover;
mod forget;
mod form;
mod heal;
mod migrations;
mod orphans;
mod preflight;
mod priorities;
mod reasons;
mod reject;
mod roll;
mod scale;
mod stage;
mod unknown_nodes;

pub use priorities::{PRIORITIES, Rule};
pub use stage::{Lost, Plan, Rejection, Stage};
pub use unknown_nodes::unknown_nodes;

use jiff::Timestamp;

use crate::attempts::Attempts;
use crate::memory::Memory;
use crate::model::{Desired, MemberRef, ShardIndex};
use crate::observation::{Claim, Credentials, Facts, Member, Observation, Workload};
use crate::step::Step;
use stage::{HEARTBEAT, LATER, SOON};

/// All inputs of a plan.
struct View<'a> {
    desired: &'a Desired,
    observed: &'a Observation,
    memory: &'a Memory,
    attempts: &'a Attempts,
}

/// Plans the next steps.
pub fn plan(desired: &Desired, observed: &Observation, memory: &Memory, attempts: &Attempts, now: Timestamp) -> Plan {
    let memory = &memory.recall(desired, observed);
    let view = View {
        desired,
        observed,
        memory,
        attempts,
    };
    let mut plan = view.plan();
    plan.defer(|step| attempts.is_under_way(step, now));
    if desired.paused {
        plan.steps.clear();
        plan.deferred.clear();
        plan.requeue_after = HEARTBEAT.min(plan.requeue_after.max(LATER));
    }
    plan
}

impl View<'_> {
    fn plan(&self) -> Plan {
        if self.observed.deleting {
            return Plan::new(Stage::Deleting, Vec::new());
        }
        if let Some(why) = &self.observed.pods_unknown {
            return Plan::new(Stage::Blind(why.clone()), Vec::new());
        }
        if let Some(plan) = self.recover_credentials() {
            return plan;
        }
        let objects = self.objects();
        let mut plan = if self.memory.formed { self.keep() } else { self.form() };
        if !objects.is_empty() {
            plan.steps.splice(0..0, objects);
            plan.requeue_after = SOON;
            if plan.stage.is_settled() {
                plan.stage = Stage::Writing;
            }
        }
        self.clear_up(&mut plan);
        plan.steps.splice(0..0, self.repair_credentials());
        plan
    }

    /// A cluster that was complete once: the first rule of the table that has something to do. Configuration disturbs
    /// no client, so it does not wait for a long slot migration or rolling update to end.
    fn keep(&self) -> Plan {
        let mut rules = PRIORITIES.iter();
        let found = rules.find_map(|rule| Some((rule, self.apply(*rule)?)));
        let (comes_first, mut plan) = match found {
            Some((rule, plan)) => (rule.comes_first(), plan),
            None => (false, self.healthy()),
        };
        if comes_first {
            return plan;
        }
        let beside = matches!(
            plan.stage,
            Stage::Moving { .. } | Stage::Removing | Stage::Rolling { .. } | Stage::Stuck { .. }
        );
        if beside {
            plan.steps.extend(self.configuration());
        }
        // Before the failover, which a server may reject for a long time.
        if matches!(plan.stage, Stage::FailingOver { .. }) {
            plan.steps.splice(0..0, self.configuration());
        }
        self.clear_failover_request(&mut plan);
        self.evacuate_beside(&mut plan);
        plan
    }

    /// The cluster matches the desired state. No event tells when the servers agree that an old node has failed, or
    /// that two nodes belong to one shard. If either is pending, the operator reconciles again soon.
    fn healthy(&self) -> Plan {
        let mut plan = Plan::new(Stage::Healthy, Vec::new());
        if self.has_unknown_nodes() || self.evacuations().next().is_some() {
            plan.requeue_after = LATER;
        }
        plan
    }

    /// Creates missing objects, for the whole cluster and for each member. The credentials come first, because the other
    /// objects contain them. Nothing else is written if the spec cannot be turned into objects or its servers could not
    /// read the data, or before the prerequisites of the first object exist.
    fn objects(&self) -> Vec<Step> {
        let missing = self.observed.credentials == Credentials::Missing;
        let credentials = missing.then_some(Step::CreateCredentials).into_iter();
        let waits = !self.memory.formed && !self.observed.missing.is_empty();
        if self.invalid().is_some() || waits || self.downgrade().is_some() {
            return credentials.collect();
        }
        let whole = (!self.observed.objects_ready).then_some(Step::WriteObjects);
        // A deleted claim is created again: no pod can be scheduled without it.
        let unclaimed = |member: &Member| {
            let missing = self.desired.persistence && member.claim == Claim::Absent;
            missing && member.workload == Workload::Current && member.facts().is_none()
        };
        let absent = |at: &MemberRef| {
            let member = self.observed.members.get(at);
            member.is_none_or(|member| member.workload == Workload::Absent || unclaimed(member))
        };
        credentials
            .chain(whole)
            .chain(self.desired.members().filter(absent).map(Step::CreateMember))
            .collect()
    }

    /// The first desired member with a pod that cannot run.
    fn stuck(&self) -> Option<Plan> {
        self.desired.members().find_map(|at| {
            let member = self.observed.members.get(&at)?;
            if member.facts().is_some() {
                return None;
            }
            let trouble = member.pod.as_ref()?.trouble.clone()?;
            let member = Some(at);
            Some(Plan::new(Stage::Stuck { member, trouble }, self.unstick()))
        })
    }

    /// Members with a pod that cannot run and an outdated workload: a corrected spec must reach them. This disturbs no
    /// client, because they do not run.
    fn unstick(&self) -> Vec<Step> {
        let stuck = self.desired.members().filter(|at| {
            self.observed.members.get(at).is_some_and(|member| {
                member.facts().is_none()
                    && member.workload == Workload::Outdated
                    && member.pod.as_ref().is_some_and(|pod| pod.trouble.is_some())
            })
        });
        if self.invalid().is_none() && self.downgrade().is_none() {
            stuck.map(Step::RollMember).collect()
        } else {
            Vec::new()
        }
    }

    fn answering_shards(&self) -> u32 {
        let answers = |shard: &u32| {
            self.observed
                .shard(ShardIndex(*shard))
                .any(|(_, member)| member.facts().is_some())
        };
        u32::try_from((0..self.desired.shards).filter(answers).count()).unwrap_or(u32::MAX)
    }

    /// The primary of a shard: the owner of its slots. In a shard that never had slots: the member that others
    /// replicate, else the first member that may own slots.
    fn primary_of(&self, shard: ShardIndex) -> Option<(MemberRef, &Facts)> {
        self.observed.primary(shard).or_else(|| {
            if self.owes_slots(shard) {
                return None;
            }
            let members = || {
                self.observed
                    .shard(shard)
                    .filter_map(|(at, member)| Some((at, member.facts()?)))
            };
            let followed = members().find_map(|(_, facts)| {
                let id = facts.me()?.primary?;
                members().find(|(_, other)| other.id == id && other.is_primary())
            });
            followed.or_else(|| members().find(|(_, facts)| facts.is_primary()))
        })
    }

    /// Whether a shard is remembered with slots that no responding server owns. Slots that another shard has since
    /// taken are no longer its own.
    fn owes_slots(&self, shard: ShardIndex) -> bool {
        self.memory.topology.get(&shard).is_some_and(|before| {
            let others = self.observed.owners().into_values();
            let left = others.fold(before.slots.clone(), |left, all| left.difference(&all));
            !left.is_empty()
        })
    }
}
