//! From what happened to the figures. Pure: the timeline in, the verdict out.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Moment;
use crate::defect::{Defect, Seen, defects};
use crate::object::{Object, Specs};
use crate::report::{Change, Spell, Truth};
use crate::timeline::Happened;

/// How things stand at the end of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Status says Ready=True.
    pub ready: bool,
    /// `state/reason` of status; empty while there is no object.
    pub state: String,
    /// What is wrong with the servers. Empty also while there is nothing to judge.
    pub defects: BTreeSet<Defect>,
    /// There is an object, and its servers are as it wants them.
    pub whole: bool,
}

/// Goes through what happened until `end`.
pub(crate) fn judge(happened: &[(Moment, Happened)], end: Moment) -> (Truth, Now) {
    let mut sweep = Sweep::default();
    for (when, what) in happened.iter().filter(|(when, _)| *when <= end) {
        sweep.until(*when);
        sweep.apply(*when, what);
    }
    sweep.until(end);
    sweep.close(end)
}

/// What is known at one moment of the sweep.
#[derive(Default)]
struct Sweep {
    at: Moment,
    object: Option<Object>,
    specs: Specs,
    members: Option<BTreeSet<String>>,
    /// Every member has been looked at once: before that nothing can be judged.
    begun: bool,
    seen: BTreeMap<String, Seen>,
    /// Slots without an acknowledgement; whether nothing but silence is known of them.
    out: BTreeMap<u16, bool>,
    /// Since when each present defect is there.
    since: BTreeMap<Defect, Moment>,
    /// The last time that anything was wrong or changed.
    quiet: Moment,
    /// The false Ready that is going on.
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
        self.judged().is_some() && self.since.is_empty()
    }

    /// Accounts for the time up to `to`, in which nothing changed.
    fn until(&mut self, to: Moment) {
        let from = std::mem::replace(&mut self.at, to);
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
            let words = defect.to_string();
            if !spell.wrong.contains(&words) {
                spell.wrong.push(words);
            }
        }
    }

    fn apply(&mut self, when: Moment, what: &Happened) {
        let was_ready = self.ready();
        let was_whole = self.whole();
        match what {
            Happened::Object(object) => self.learn(when, object.as_ref()),
            Happened::Members(members) => {
                self.members = Some(members.clone());
                self.seen.retain(|pod, _| members.contains(pod));
                self.quiet = when;
            }
            Happened::Looked { pod, seen } => {
                self.seen.insert(pod.clone(), seen.clone());
                self.quiet = when;
            }
            Happened::SlotOut { slot, silent } => _ = self.out.insert(*slot, *silent),
            Happened::SlotBack { slot } => _ = self.out.remove(slot),
        }
        self.look_again(when);
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

    /// What is wrong now; a defect that was there before keeps its beginning.
    fn look_again(&mut self, when: Moment) {
        let known = |members: &BTreeSet<String>| members.iter().all(|pod| self.seen.contains_key(pod));
        self.begun |= self.members.as_ref().is_some_and(known);
        let mut wrong = BTreeSet::new();
        if let Some(object) = self.judged() {
            let unasked = |pod: &String| (pod.clone(), self.seen.get(pod).cloned().unwrap_or(Seen::Unasked));
            let members = self.members.iter().flatten().map(unasked).collect();
            wrong = defects(self.specs.judged(object), &members);
            let no_write = |silent: &bool| if *silent { Defect::NoAnswer } else { Defect::NoWrites };
            wrong.extend(self.out.values().map(no_write));
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

    fn story(&mut self, at: Moment, words: String) {
        self.truth.story.push(Change { at, words });
    }

    fn close(mut self, end: Moment) -> (Truth, Now) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::facts::{Facts, Role};
    use crate::object::Wanted;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(millis: u64) -> Moment {
        Moment(ms(millis))
    }

    fn object(generation: i64, ready: bool) -> Happened {
        Happened::Object(Some(Object {
            generation,
            wanted: Wanted { shards: 1, replicas: 1 },
            ready,
            ready_of: generation,
            state: if ready {
                "Ready/ClusterHealthy"
            } else {
                "Reconciling/Reconciling"
            }
            .to_owned(),
            deleting: false,
        }))
    }

    fn looked(pod: &str, seen: Seen) -> Happened {
        Happened::Looked {
            pod: pod.to_owned(),
            seen,
        }
    }

    fn primary() -> Seen {
        Seen::Answers(Facts {
            id: "a".into(),
            ok: true,
            role: Role::Primary,
            slots: vec![0..=16383],
            epoch: 1,
            moving: false,
        })
    }

    fn replica(linked: bool) -> Seen {
        Seen::Answers(Facts {
            id: "b".into(),
            ok: true,
            role: Role::Replica { of: "a".into(), linked },
            slots: vec![],
            epoch: 1,
            moving: false,
        })
    }

    /// One shard with a replica, whole and Ready from the first second on; then what the case adds.
    fn case(more: &[(u64, Happened)], end: u64) -> (Truth, Now) {
        let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
        let mut all = vec![
            (at(0), object(1, false)),
            (at(100), Happened::Members(members)),
            (at(200), looked("p", primary())),
            (at(300), looked("r", replica(true))),
            (at(700), object(1, true)),
        ];
        all.extend(more.iter().map(|(millis, what)| (at(*millis), what.clone())));
        all.sort_by_key(|(when, _)| *when);
        judge(&all, at(end))
    }

    #[test]
    fn a_cluster_that_becomes_whole_is_late_until_status_says_so() {
        let (truth, now) = case(&[], 5000);
        assert_eq!((truth.false_ready(), truth.late_ready()), (ms(0), ms(400)));
        assert!(now.ready && now.whole);
        assert_eq!(now.state, "Ready/ClusterHealthy");
    }

    #[test]
    fn a_refusing_server_may_be_called_ready_for_one_second() {
        let more = [
            (1000, looked("p", Seen::Refuses("refused".into()))),
            (2500, object(1, false)),
        ];
        let (truth, now) = case(&more, 4000);
        assert_eq!(truth.false_ready(), ms(1500));
        assert_eq!(truth.worst_false_ready(), ms(1500));
        assert_eq!(truth.beyond(), ms(500));
        assert_eq!(truth.spells[0].wrong, ["p refuses"]);
        assert!(!now.whole && !now.ready);
    }

    #[test]
    fn a_silent_server_may_be_called_ready_for_two_seconds() {
        let more = [(1000, looked("p", Seen::Silent)), (2900, object(1, false))];
        let (truth, _) = case(&more, 4000);
        assert_eq!((truth.false_ready(), truth.beyond()), (ms(1900), ms(0)));
        let more = [(1000, looked("p", Seen::Silent)), (3300, object(1, false))];
        assert_eq!(case(&more, 4000).0.beyond(), ms(300));
    }

    #[test]
    fn a_fault_behind_a_known_one_has_its_own_deadline() {
        let more = [
            (1000, looked("p", Seen::Silent)),
            (1500, looked("r", replica(false))),
            (2700, object(1, false)),
        ];
        let (truth, _) = case(&more, 4000);
        assert_eq!(truth.false_ready(), ms(1700));
        assert_eq!(
            truth.beyond(),
            ms(200),
            "the lost link tells at 1.5 s and is due at 2.5 s"
        );
    }

    #[test]
    fn two_faults_are_two_spells() {
        let more = [
            (1000, looked("r", replica(false))),
            (1100, looked("r", replica(true))),
            (2000, looked("r", replica(false))),
            (2300, looked("r", replica(true))),
        ];
        let (truth, _) = case(&more, 4000);
        assert_eq!(truth.spells.len(), 2);
        assert_eq!((truth.false_ready(), truth.worst_false_ready()), (ms(400), ms(300)));
    }

    #[test]
    fn a_false_ready_that_lasts_until_the_end_counts() {
        let (truth, _) = case(&[(1000, looked("p", Seen::Silent))], 61_000);
        assert_eq!((truth.false_ready(), truth.beyond()), (ms(60_000), ms(58_000)));
    }

    #[test]
    fn a_slot_without_writes_is_no_ready_cluster() {
        let more = [
            (1000, Happened::SlotOut { slot: 7, silent: false }),
            (1000, Happened::SlotOut { slot: 8, silent: false }),
            (1400, Happened::SlotBack { slot: 7 }),
            (2600, Happened::SlotBack { slot: 8 }),
        ];
        let (truth, _) = case(&more, 4000);
        assert_eq!((truth.false_ready(), truth.beyond()), (ms(1600), ms(600)));
        assert_eq!(truth.spells[0].wrong, ["a slot takes no write"]);
    }

    #[test]
    fn ready_of_an_older_generation_is_judged_by_the_spec_it_speaks_of() {
        let newer = |ready_of, ready| {
            Happened::Object(Some(Object {
                generation: 2,
                wanted: Wanted { shards: 1, replicas: 2 },
                ready,
                ready_of,
                state: String::new(),
                deleting: false,
            }))
        };
        let (truth, _) = case(&[(1000, newer(1, true)), (1200, newer(2, false))], 4000);
        assert_eq!(truth.false_ready(), ms(0), "status has not seen the new spec yet");
        let (truth, _) = case(&[(1000, newer(2, true))], 4000);
        assert_eq!((truth.false_ready(), truth.beyond()), (ms(3000), ms(2000)));
    }

    #[test]
    fn nothing_is_judged_before_every_member_was_looked_at_once() {
        let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
        let mut all = vec![
            (at(0), object(1, true)),
            (at(100), Happened::Members(members)),
            (at(300), looked("p", primary())),
            (at(900), looked("r", replica(true))),
        ];
        assert_eq!(judge(&all, at(2000)).0.false_ready(), ms(0));
        all.push((at(1000), Happened::Members(BTreeSet::new())));
        assert_eq!(
            judge(&all, at(2000)).0.false_ready(),
            ms(1000),
            "members that vanish are missed"
        );
    }

    #[test]
    fn a_cluster_without_any_member_is_not_ready() {
        let all = [(at(0), object(1, true)), (at(100), Happened::Members(BTreeSet::new()))];
        assert_eq!(judge(&all, at(1100)).0.false_ready(), ms(1000));
    }

    #[test]
    fn a_pause_between_two_restarts_is_not_late() {
        let more = [
            (1000, object(2, false)),
            (1100, looked("r", Seen::Refuses(String::new()))),
            (2000, looked("r", replica(true))),
            (2500, looked("p", Seen::Refuses(String::new()))),
            (3000, looked("p", primary())),
            (3200, object(2, true)),
        ];
        let (truth, _) = case(&more, 4000);
        assert_eq!(truth.late, [ms(400), ms(200)], "the creation, and the end of the roll");
    }

    #[test]
    fn nothing_is_judged_once_the_cluster_is_being_deleted() {
        let Happened::Object(Some(mut going)) = object(1, true) else {
            unreachable!()
        };
        going.deleting = true;
        let more = [
            (1000, Happened::Object(Some(going))),
            (1100, Happened::Members(BTreeSet::new())),
            (1500, Happened::Object(None)),
        ];
        let (truth, now) = case(&more, 9000);
        assert_eq!((truth.false_ready(), now.whole, now.ready), (ms(0), false, false));
    }
}
