//! The result of an audit in one sentence.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::report::{Truth, Writes, of_seconds};

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditResult {
    /// For programs.
    pub outcome: Outcome,
    /// For people: one sentence.
    pub sentence: String,
}

/// The result of an audit, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// Status was true and no acknowledged write is lost, as far as could be judged.
    True,
    /// Status said Ready for longer than the contract allows.
    FalseReady,
    /// Acknowledged writes are lost.
    WritesLost,
    /// No member could be queried: nothing is known.
    NotJudged,
}

impl fmt::Display for AuditResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl AuditResult {
    /// Derives the result from the figures. What the auditor may not have noticed (`unobserved`) is not counted against
    /// the cluster.
    pub(crate) fn of(truth: &Truth, writes: &Writes, unobserved: Duration, problems: &[String]) -> Self {
        let beyond = truth.beyond_unobserved(unobserved);
        let (outcome, sentence) = if writes.lost > 0 {
            let lost = format!("Data was lost: {} acknowledged writes are gone.", writes.lost);
            (Outcome::WritesLost, lost)
        } else if beyond > Duration::ZERO {
            let first = truth.spells.iter().max_by_key(|spell| spell.beyond);
            let why = first.map(|spell| spell.wrong.join(", ")).unwrap_or_default();
            let sentence = format!(
                "Status was not true: it said Ready for {} longer than its deadlines allow ({why}).",
                of_seconds(beyond)
            );
            (Outcome::FalseReady, sentence)
        } else if truth.judged.is_zero() {
            (Outcome::NotJudged, not_judged(truth, problems))
        } else {
            (Outcome::True, all_true(truth, writes))
        };
        Self { outcome, sentence }
    }
}

fn not_judged(truth: &Truth, problems: &[String]) -> String {
    let reason = match truth.not_judged.as_slice() {
        [] => problems
            .first()
            .cloned()
            .unwrap_or_else(|| "it ended too soon".to_owned()),
        [one, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => " and 1 more member".to_owned(),
                more => format!(" and {more} more members"),
            };
            format!("{}{more} could not be asked: {}", one.pod, one.why)
        }
    };
    format!("Nothing could be judged: {}.", reason.trim_end_matches('.'))
}

fn all_true(truth: &Truth, writes: &Writes) -> String {
    let wrote = if writes.acknowledged > 0 {
        let outage = writes.longest_outage.map_or_else(
            || "no slot was out".to_owned(),
            |outage| format!("the longest outage of a slot was {}", of_seconds(outage.lasted)),
        );
        let unread = match writes.unread_slots {
            0 => String::new(),
            slots => format!(" of those that could be read back ({slots} slots could not)"),
        };
        format!(", no acknowledged write was lost{unread}, and {outage}")
    } else if let Some(why) = &writes.unreached {
        format!(", and no canary could be written ({why})")
    } else {
        ", and nothing was written".to_owned()
    };
    let left_out = match truth.not_judged.len() {
        0 => String::new(),
        1 => format!("; {} could not be judged", truth.not_judged[0].pod),
        more => format!("; {more} members could not be judged"),
    };
    let judged = of_seconds(truth.judged);
    format!("Status was true for the {judged} that could be judged{wrote}{left_out}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::reach::Unreached;
    use crate::report::{NotJudged, Outage, Spell};

    const S: Duration = Duration::from_secs(1);

    fn unreached(pod: &str, why: Unreached) -> NotJudged {
        NotJudged {
            pod: pod.to_owned(),
            lasted: S * 60,
            why,
        }
    }

    #[test]
    fn the_result_is_stated_in_one_sentence() {
        let fine = || Truth {
            judged: S * 60,
            ..Truth::default()
        };
        let written = Writes {
            acknowledged: 120_000,
            ..Writes::default()
        };
        let broken = Writes {
            lost: 12,
            ..written.clone()
        };
        let slow = Writes {
            longest_outage: Some(Outage {
                slot: 7,
                from: Moment::default(),
                lasted: S / 2,
            }),
            ..written.clone()
        };
        let spell = Spell {
            lasted: S * 5,
            beyond: S * 4,
            wrong: vec!["shop-0-0 does not respond".to_owned()],
            ..Spell::default()
        };
        let lie = Truth {
            spells: vec![spell],
            ..fine()
        };
        let partly = Truth {
            not_judged: vec![unreached("shop-0-1", Unreached::NeverResponded)],
            ..fine()
        };
        let rejected = Unreached::LoginRejected("NOAUTH: Authentication required.".to_owned());
        let blind = Truth {
            not_judged: vec![unreached("shop-0-0", rejected.clone()), unreached("shop-0-1", rejected)],
            ..Truth::default()
        };
        let no_pods = ["pods cannot be watched: pods is forbidden".to_owned()];
        let none: &[String] = &[];
        for (truth, writes, stalled, problems, outcome, sentence) in [
            (
                fine(),
                &written,
                S,
                none,
                Outcome::True,
                "Status was true for the 60.000 s that could be judged, no acknowledged write was lost, and no slot was out.",
            ),
            (
                fine(),
                &slow,
                S,
                none,
                Outcome::True,
                "Status was true for the 60.000 s that could be judged, no acknowledged write was lost, and the longest \
                 outage of a slot was 0.500 s.",
            ),
            (
                partly,
                &Writes::default(),
                S,
                none,
                Outcome::True,
                "Status was true for the 60.000 s that could be judged, and nothing was written; shop-0-1 could not be judged.",
            ),
            (
                fine(),
                &broken,
                S,
                none,
                Outcome::WritesLost,
                "Data was lost: 12 acknowledged writes are gone.",
            ),
            (
                lie.clone(),
                &written,
                S,
                none,
                Outcome::FalseReady,
                "Status was not true: it said Ready for 3.000 s longer than its deadlines allow (shop-0-0 does not respond).",
            ),
            (
                lie,
                &written,
                S * 4,
                none,
                Outcome::True,
                "Status was true for the 60.000 s that could be judged, no acknowledged write was lost, and no slot was out.",
            ),
            (
                blind,
                &Writes::default(),
                S,
                none,
                Outcome::NotJudged,
                "Nothing could be judged: shop-0-0 and 1 more member could not be asked: it rejects the auditor's login: \
                 NOAUTH: Authentication required.",
            ),
            (
                Truth::default(),
                &Writes::default(),
                S,
                &no_pods,
                Outcome::NotJudged,
                "Nothing could be judged: pods cannot be watched: pods is forbidden.",
            ),
        ] {
            let result = AuditResult::of(&truth, writes, stalled, problems);
            assert_eq!((result.outcome, result.sentence.as_str()), (outcome, sentence));
        }
    }
}
