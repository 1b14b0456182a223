//! Faults between an operator and its API server while a scenario runs on a cluster.

use std::time::Duration;

use kube_sandbox::faults::{Fault, Rule, Verb, WatchFault};

use crate::life::KINDS;

/// One way to disturb a run.
#[derive(Clone, Debug)]
pub struct Disturbance {
    pub name: String,
    /// The rules from the start of the run.
    pub rules: Vec<Rule>,
    /// The rules for the operator that starts after a crash. If empty, that operator runs without faults.
    pub afterwards: Vec<Rule>,
    /// How long this disturbance alone delays an operator's observation or report.
    pub costs: Duration,
    /// The relist interval of watches, if a relist is the repair.
    pub relist: Option<Duration>,
}

impl Disturbance {
    fn new(name: impl Into<String>, rule: Rule) -> Self {
        Self {
            name: name.into(),
            rules: vec![rule],
            afterwards: Vec::new(),
            costs: Duration::ZERO,
            relist: None,
        }
    }

    fn costing(self, costs: Duration) -> Self {
        Self { costs, ..self }
    }

    /// Kills the operator after the n-th write.
    pub fn crash(nth: u64) -> Self {
        let name = format!("killed after write {nth}");
        let rule = Rule::new(&name).writes().nth(nth).then(Fault::Crash);
        Self::new(name, rule)
    }

    /// Whether the disturbance kills the operator.
    pub fn is_crash(&self) -> bool {
        self.name.starts_with("killed")
    }
}

/// Faulty responses to a request, and how long each delays the caller.
fn answers() -> Vec<(&'static str, Fault, Duration)> {
    let wait = Duration::from_millis(300);
    vec![
        ("409", Fault::conflict(), Duration::ZERO),
        ("410", Fault::gone(), Duration::ZERO),
        ("429", Fault::too_many_requests(1), Duration::from_secs(1)),
        ("500", Fault::internal_error(), Duration::ZERO),
        ("503", Fault::unavailable(), Duration::ZERO),
        ("504", Fault::TimeOut(wait), wait),
        ("no connection", Fault::Drop, Duration::ZERO),
        ("no answer, though done", Fault::LoseResponse, Duration::ZERO),
    ]
}

/// Every faulty response to every `step`-th write. The first write differs for every scenario and every response.
pub fn refusals(writes: u64, step: u64, begin: u64) -> Vec<Disturbance> {
    let mut all = Vec::new();
    for (index, (message, fault, costs)) in (0u64..).zip(answers()) {
        for turn in (0..writes).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let nth = (begin + index * 5 + turn) % writes + 1;
            let name = format!("{message} to write {nth}");
            let rule = Rule::new(&name).writes().nth(nth).then(fault.clone());
            all.push(Disturbance::new(name, rule).costing(costs));
        }
    }
    all
}

/// Every fault that can make a read misleading.
pub fn readings(writes: u64) -> Vec<Disturbance> {
    let watch = |name: &str, fault: WatchFault| {
        let rule = Rule::new(name).verb(Verb::Watch).then(Fault::Watch(fault));
        Disturbance::new(name, rule)
    };
    let ms = Duration::from_millis;
    // The next operator gets the same lists that its predecessor got when it started.
    let stale = Disturbance {
        afterwards: vec![
            Rule::new("stale lists")
                .verb(Verb::List)
                .range(1, KINDS)
                .then(Fault::StaleRead { back: 1 }),
        ],
        ..Disturbance::crash(writes / 2 + 1)
    };
    let stale = Disturbance {
        name: format!("{}, then stale lists", stale.name),
        ..stale
    };
    let lost = Disturbance {
        relist: Some(ms(1000)),
        ..watch(
            "the second event of every watch lost",
            WatchFault::Lose { from: 2, count: 1 },
        )
        .costing(ms(1500))
    };
    let gets = Rule::new("stale gets")
        .verb(Verb::Get)
        .then(Fault::StaleRead { back: 1 });
    let rejected = Rule::new("every third list refused")
        .verb(Verb::List)
        .every(3)
        .then(Fault::internal_error());
    vec![
        stale,
        lost,
        Disturbance::new("stale gets", gets),
        Disturbance::new("every third list refused", rejected).costing(ms(500)),
        watch("late events", WatchFault::Lag(ms(150))).costing(ms(150)),
        watch("merged events", WatchFault::Coalesce(ms(50))).costing(ms(50)),
        watch("watches that end", WatchFault::Cut { after: 3 }),
        watch("watches that expire", WatchFault::Expire { after: 3 }).costing(ms(500)),
    ]
}
