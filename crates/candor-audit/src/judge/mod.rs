//! Computes the figures from the timeline. Pure: timeline in, figures out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock::Moment;
use crate::defect::{Defect, Observation, defects};
use crate::object::{Object, Specs};
use crate::reach::Unreached;
use crate::report::{Change, NotJudged, Spell, Truth};
use crate::timeline::Happened;

/// A member that could not be queried for less time than this is not mentioned.
const MIN_REPORTED: Duration = Duration::from_secs(1);

/// The state at the end of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Status reports Ready=True.
    pub ready: bool,
    /// `state/reason` of status; empty while there is no object.
    pub state: String,
    /// The defects of the servers. Also empty while there is nothing to judge.
    pub defects: BTreeSet<Defect>,
    /// The object exists, and all its servers could be queried and match it.
    pub whole: bool,
}

/// Processes the timeline up to `end`.
pub(crate) fn judge(happened: &[(Moment, Happened)], end: Moment) -> (Truth, Now) {
    let mut sweep = Sweep::default();
    for (when, what) in happened.iter().filter(|(when, _)| *when <= end) {
        sweep.until(*when);
        sweep.apply(*when, what);
    }
    sweep.until(end);
    sweep.close(end)
}

/// The state at one moment of the sweep.
#[derive(Default)]
struct Sweep {
    at: Moment,
    object: Option<Object>,
    specs: Specs,
    members: Option<BTreeSet<String>>,
    /// Every member has been observed once: before that, nothing can be judged.
    begun: bool,
    observed: BTreeMap<String, Observation>,
    /// Members that have replied since the audit started: from then on a missing reply counts.
    answered: BTreeSet<String>,
    /// A member has replied: there is a route to the pods, and the auditor's login is valid.
    reached: bool,
    /// Members of which nothing is known, and why.
    unreached: BTreeMap<String, Unreached>,
    /// Per member, for how long nothing was known of it, and the last reason.
    not_judged: BTreeMap<String, NotJudged>,
    /// Slots without an acknowledgement; `true` if the only evidence is a missing reply.
    out: BTreeMap<u16, bool>,
    /// When each present defect started.
    since: BTreeMap<Defect, Moment>,
    /// The last time at which something was wrong or changed.
    quiet: Moment,
    /// The false Ready that is in progress.
    running: Option<Spell>,
    truth: Truth,
}

impl Sweep {
    fn judged(&self) -> Option<&Object> {
        self.object.as_ref().filter(|object| self.begun && !object.deleting)
    }

    fn ready(&self) -> bool {
        self.judged().is_some_and(|object| object.ready)
    }

    fn whole(&self) -> bool {
        self.judged().is_some() && self.since.is_empty() && self.unreached.is_empty()
    }

    /// Accounts for the time up to `to`, during which nothing changed.
    fn until(&mut self, to: Moment) {
        let from = std::mem::replace(&mut self.at, to);
        self.account_for_reach(to.since(from));
        if !self.ready() || self.since.is_empty() {
            return;
        }
        let spell = self.running.get_or_insert_with(|| Spell {
            from,
            ..Spell::default()
        });
        let due = self
            .since
            .iter()
            .map(|(defect, since)| since.after(defect.deadline()))
            .min();
        // There is a defect, so there is a first deadline.
        let due = due.unwrap_or(to).max(from);
        spell.lasted += to.since(from);
        spell.beyond += to.since(due);
        for defect in self.since.keys() {
            let text = defect.to_string();
            if !spell.wrong.contains(&text) {
                spell.wrong.push(text);
            }
        }
    }

    /// Counts the time during which something could be judged, and per member the time during which it could not.
    fn account_for_reach(&mut self, lasted: Duration) {
        if self.judged().is_none() {
            return;
        }
        // The absence of pods is known without querying a server.
        let no_pods = self.members.as_ref().is_some_and(BTreeSet::is_empty);
        let known = self
            .members
            .iter()
            .flatten()
            .any(|pod| !self.unreached.contains_key(pod));
        if known || no_pods {
            self.truth.judged += lasted;
        }
        for (pod, why) in &self.unreached {
            let entry = self.not_judged.entry(pod.clone()).or_insert_with(|| NotJudged {
                pod: pod.clone(),
                lasted: Duration::ZERO,
                why: why.clone(),
            });
            entry.lasted += lasted;
            entry.why = why.clone();
        }
    }

    fn apply(&mut self, when: Moment, what: &Happened) {
        let was_ready = self.ready();
        let was_whole = self.whole();
        match what {
            Happened::Object(object) => self.learn(when, object.as_ref()),
            Happened::Members(members) => {
                self.members = Some(members.clone());
                self.observed.retain(|pod, _| members.contains(pod));
                self.answered.retain(|pod| members.contains(pod));
                self.quiet = when;
            }
            Happened::Observed { pod, observed } => {
                if matches!(observed, Observation::Replied(_)) {
                    self.answered.insert(pod.clone());
                    self.reached = true;
                }
                self.observed.insert(pod.clone(), observed.clone());
                self.quiet = when;
            }
            Happened::SlotOut { slot, timed_out } => _ = self.out.insert(*slot, *timed_out),
            Happened::SlotBack { slot } => _ = self.out.remove(slot),
        }
        self.update_defects(when);
        if !self.ready() || self.since.is_empty() {
            self.truth.spells.extend(self.running.take());
        }
        if self.ready() && !was_ready && was_whole {
            let late = when.since(self.quiet);
            self.truth.late.push(late);
        }
        if !was_whole || !self.whole() {
            self.quiet = when;
        }
    }

    fn learn(&mut self, when: Moment, object: Option<&Object>) {
        if let Some(object) = object {
            self.specs.learn(object);
            if self
                .object
                .as_ref()
                .is_none_or(|old| old.generation != object.generation)
            {
                self.quiet = when;
            }
            if self.object.as_ref().is_none_or(|old| old.state != object.state) {
                self.story(when, format!("status says {}", object.state));
            }
        }
        self.object = object.cloned();
    }

    /// Computes the present defects; a defect that was already present keeps its start.
    fn update_defects(&mut self, when: Moment) {
        let known = |members: &BTreeSet<String>| members.iter().all(|pod| self.observed.contains_key(pod));
        self.begun |= self.members.as_ref().is_some_and(known);
        let mut wrong = BTreeSet::new();
        if let Some(object) = self.judged() {
            let known = |pod: &String| (pod.clone(), self.known(pod));
            let members: BTreeMap<String, Observation> = self.members.iter().flatten().map(known).collect();
            let desired = self.specs.judged(object);
            wrong = defects(desired, &members);
            let unreached = |(pod, observed): (&String, &Observation)| match observed {
                Observation::Unreached(why) => Some((pod.clone(), why.clone())),
                _ => None,
            };
            let unreached: BTreeMap<String, Unreached> = members.iter().filter_map(unreached).collect();
            let no_write = |timed_out: &bool| {
                if *timed_out {
                    Defect::OwnerNotResponding
                } else {
                    Defect::NoWrites
                }
            };
            // If no member responds, a canary without a reply gives no new information.
            let none_known = !members.is_empty() && unreached.len() == members.len();
            let takes_writes = desired.shards > 0;
            wrong.extend(self.out.values().filter(|_| takes_writes && !none_known).map(no_write));
            self.unreached = unreached;
        } else {
            self.unreached.clear();
        }
        let began: Vec<Defect> = wrong
            .iter()
            .filter(|new| !self.since.contains_key(new))
            .cloned()
            .collect();
        let ended: Vec<Defect> = self.since.keys().filter(|old| !wrong.contains(old)).cloned().collect();
        for defect in ended {
            self.since.remove(&defect);
            self.story(when, format!("over: {defect}"));
        }
        for defect in began {
            self.story(when, defect.to_string());
            self.since.insert(defect, when);
        }
    }

    /// What was observed of a member, as far as it is about the member and not about the route to it.
    fn known(&self, pod: &str) -> Observation {
        let observed = self.observed.get(pod).cloned().unwrap_or(Observation::NotQueried);
        match observed {
            Observation::Timeout if !self.answered.contains(pod) => Observation::Unreached(Unreached::NeverResponded),
            Observation::Timeout if self.none_responds() => Observation::Unreached(Unreached::NoneResponds),
            Observation::Failed(message) if !self.reached => Observation::Unreached(Unreached::NeverAccepted(message)),
            observed => observed,
        }
    }

    /// No member responds, although there are several of them.
    fn none_responds(&self) -> bool {
        let quiet = |observed: &Observation| matches!(observed, Observation::Timeout | Observation::Unreached(_));
        self.observed.len() > 1 && self.observed.values().all(quiet)
    }

    fn story(&mut self, at: Moment, text: String) {
        self.truth.story.push(Change { at, text });
    }

    fn close(mut self, end: Moment) -> (Truth, Now) {
        // The first moments of a pod are not a finding, unless nothing else is known.
        let lasting = |one: &NotJudged| one.lasted >= MIN_REPORTED || self.unreached.contains_key(&one.pod);
        self.truth.not_judged = std::mem::take(&mut self.not_judged)
            .into_values()
            .filter(lasting)
            .collect();
        self.truth.spells.extend(self.running.take());
        if self.whole() && !self.ready() {
            self.truth.late.push(end.since(self.quiet));
        }
        let now = Now {
            ready: self.ready(),
            state: self
                .object
                .as_ref()
                .map(|object| object.state.clone())
                .unwrap_or_default(),
            whole: self.whole(),
            defects: self.since.into_keys().collect(),
        };
        (self.truth, now)
    }
}
