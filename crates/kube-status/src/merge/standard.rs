//! The strategy of the field: issues first, then unknowns, then good news.

use std::fmt;

use super::{
    INFO_REPORTED, ISSUES_REPORTED, Input, MergeError, Merged, Operation, Priority, Strategy, UNKNOWN_REPORTED, crowd,
    lines,
};
use crate::severity::Severity;
use crate::{Polarity, Status};

type PriorityRule<'s> = Box<dyn Fn(&Input<'_>) -> Priority + Send + Sync + 's>;
type ReasonRule<'s> = Box<dyn Fn(&Groups<'_, '_>) -> String + Send + Sync + 's>;
type LinesRule<'s> = Box<dyn Fn(Vec<String>) -> Vec<String> + Send + Sync + 's>;

/// The conditions of a merge by priority, in the caller's order and then the oldest first.
///
/// ```
/// use kube_status::merge::{Groups, Standard};
/// fn count(groups: &Groups<'_, '_>) -> String {
///     format!("{}Issues", groups.issues.len())
/// }
/// let counting = Standard::new().reason(count);
/// # let _ = counting;
/// ```
#[derive(Debug, Default)]
pub struct Groups<'i, 'a> {
    /// What is wrong.
    pub issues: Vec<&'i Input<'a>>,
    /// Unknown conditions.
    pub unknown: Vec<&'i Input<'a>>,
    /// What is well.
    pub info: Vec<&'i Input<'a>>,
}

/// The default [`Strategy`].
///
/// ```
/// use kube_status::merge::Standard;
/// use kube_status::Polarity;
/// let strategy = Standard::new().negative(["ScalingUp"]).reasons("NotReady", "ReadyUnknown", "Ready");
/// let degraded = Standard::new().target(Polarity::Negative);
/// ```
pub struct Standard<'s> {
    negative: Vec<String>,
    priority: Option<PriorityRule<'s>>,
    target: Polarity,
    reasons: [String; 3],
    reason: Option<ReasonRule<'s>>,
    lines: Option<LinesRule<'s>>,
    all_well: Option<String>,
}

impl fmt::Debug for Standard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standard")
            .field("negative", &self.negative)
            .field("target", &self.target)
            .field("reasons", &self.reasons)
            .field("all_well", &self.all_well)
            .finish_non_exhaustive()
    }
}

impl Default for Standard<'_> {
    fn default() -> Self {
        Self {
            negative: Vec::new(),
            priority: None,
            target: Polarity::Positive,
            reasons: [ISSUES_REPORTED, UNKNOWN_REPORTED, INFO_REPORTED].map(str::to_owned),
            reason: None,
            lines: None,
            all_well: None,
        }
    }
}

impl<'s> Standard<'s> {
    /// All types positive, a positive target, the default reasons.
    ///
    /// ```
    /// let strategy = kube_status::merge::Standard::new();
    /// # let _ = strategy;
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// The types of which `True` is bad.
    ///
    /// ```
    /// let strategy = kube_status::merge::Standard::new().negative(["Degraded", "Paused"]);
    /// # let _ = strategy;
    /// ```
    #[must_use]
    pub fn negative<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.negative = types.into_iter().map(Into::into).collect();
        self
    }

    /// A rule of the caller's own for what is an issue; [`Standard::negative`] is then not asked.
    ///
    /// ```
    /// use kube_status::merge::{Priority, Standard};
    /// let patient = Standard::new().priority(|c| match c.reason {
    ///     "Starting" => Priority::Info,
    ///     _ => Priority::of(c.status, kube_status::Polarity::Positive),
    /// });
    /// ```
    #[must_use]
    pub fn priority(mut self, rule: impl Fn(&Input<'_>) -> Priority + Send + Sync + 's) -> Self {
        self.priority = Some(Box::new(rule));
        self
    }

    /// The polarity of the result.
    ///
    /// ```
    /// use kube_status::merge::Standard;
    /// use kube_status::{Polarity, Summary};
    /// let bad_when_true = Standard::new().target(Polarity::Negative);
    /// let degraded = Summary::new("Degraded").types(["DiskReady"]).strategy(&bad_when_true);
    /// # let _ = degraded;
    /// ```
    #[must_use]
    pub fn target(mut self, polarity: Polarity) -> Self {
        self.target = polarity;
        self
    }

    /// The reasons for issues, unknowns and good news.
    ///
    /// ```
    /// let strategy = kube_status::merge::Standard::new().reasons("NotReady", "NotKnown", "AllSystemsGo");
    /// # let _ = strategy;
    /// ```
    #[must_use]
    pub fn reasons(mut self, issues: impl Into<String>, unknown: impl Into<String>, info: impl Into<String>) -> Self {
        self.reasons = [issues.into(), unknown.into(), info.into()];
        self
    }

    /// A reason computed from the conditions.
    ///
    /// ```
    /// use kube_status::merge::Standard;
    /// let first = Standard::new().reason(|g| g.issues.first().map_or("AllGood", |c| c.reason).to_owned());
    /// ```
    #[must_use]
    pub fn reason(mut self, rule: impl Fn(&Groups<'_, '_>) -> String + Send + Sync + 's) -> Self {
        self.reason = Some(Box::new(rule));
        self
    }

    /// A last word on the lines of a summary's message.
    ///
    /// ```
    /// use kube_status::merge::Standard;
    /// let short = Standard::new().lines(|mut lines| { lines.truncate(5); lines });
    /// ```
    #[must_use]
    pub fn lines(mut self, rule: impl Fn(Vec<String>) -> Vec<String> + Send + Sync + 's) -> Self {
        self.lines = Some(Box::new(rule));
        self
    }

    /// The message of a summary in which all is well, instead of the good conditions' own.
    ///
    /// ```
    /// use kube_status::merge::Standard;
    /// let short = Standard::new().all_well("All components are ready");
    /// ```
    #[must_use]
    pub fn all_well(mut self, message: impl Into<String>) -> Self {
        self.all_well = Some(message.into());
        self
    }

    pub(super) fn priority_of(&self, input: &Input<'_>) -> Priority {
        if let Some(rule) = &self.priority {
            return rule(input);
        }
        let negative = self.negative.iter().any(|t| t == input.type_);
        Priority::of(
            input.status,
            if negative {
                Polarity::Negative
            } else {
                Polarity::Positive
            },
        )
    }

    fn status(&self, top: Priority) -> Status {
        match top {
            Priority::Issue => self.target.bad(),
            Priority::Unknown => Status::Unknown,
            Priority::Info => self.target.good(),
        }
    }

    fn reason_of(&self, judged: &Judged<'_, '_>) -> String {
        let Some(rule) = &self.reason else {
            return self.reasons[judged.top as usize].clone();
        };
        let mut groups = Groups::default();
        for (input, priority) in judged.each() {
            match priority {
                Priority::Issue => groups.issues.push(input),
                Priority::Unknown => groups.unknown.push(input),
                Priority::Info => groups.info.push(input),
            }
        }
        rule(&groups)
    }
}

/// The inputs of a merge, each judged once: thousands of them do not fit the caches, and every look at them is paid.
struct Judged<'i, 'a> {
    inputs: &'i [Input<'a>],
    priorities: Vec<Priority>,
    top: Priority,
    /// The worst of the issues; one that does not say how bad it is counts as an error.
    severity: Severity,
}

impl<'i, 'a> Judged<'i, 'a> {
    fn of(inputs: &'i [Input<'a>], priority: impl Fn(&Input<'a>) -> Priority) -> Result<Self, MergeError> {
        let (mut top, mut severity) = (Priority::Info, Severity::Info);
        let judge = |input: &Input<'a>| {
            let priority = priority(input);
            top = top.min(priority);
            if priority == Priority::Issue {
                severity = severity.min(input.severity.unwrap_or(Severity::Error));
            }
            priority
        };
        let priorities: Vec<Priority> = inputs.iter().map(judge).collect();
        if priorities.is_empty() {
            return Err(MergeError::Empty);
        }
        Ok(Self {
            inputs,
            priorities,
            top,
            severity,
        })
    }

    fn each(&self) -> impl Iterator<Item = (&'i Input<'a>, Priority)> {
        self.inputs.iter().zip(self.priorities.iter().copied())
    }
}

/// The caller's order, then the oldest first. A type named twice stands where it was named last.
fn sort(inputs: &mut [Input<'_>], types: &[&str]) {
    if let [_] = types {
        inputs.sort_by_key(|c| c.since);
        return;
    }
    let rank = |type_: &str| types.iter().rposition(|t| *t == type_).unwrap_or(0);
    inputs.sort_by_cached_key(|c| (rank(c.type_), c.since));
}

impl Strategy for Standard<'_> {
    fn merge(&self, operation: Operation, mut inputs: Vec<Input<'_>>, types: &[&str]) -> Result<Merged, MergeError> {
        // An aggregate reads the order of its inputs only to break ties, and does so itself: sorting thousands of
        // objects by time would be the most expensive step of all.
        if operation == Operation::Summary || self.reason.is_some() {
            sort(&mut inputs, types);
        }
        let judged = Judged::of(&inputs, |c| self.priority_of(c))?;
        let status = self.status(judged.top);
        let reason = self.reason_of(&judged);
        let message = match operation {
            Operation::Summary => match &self.all_well {
                Some(message) if judged.top == Priority::Info => message.clone(),
                _ => self.summary_message(&judged, status),
            },
            Operation::Aggregate => crowd::message(judged.inputs, &judged.priorities, judged.top),
        };
        Ok(match judged.top {
            Priority::Issue => Merged::bad(self.target, judged.severity, reason, message),
            _ => Merged::new(status, reason, message),
        })
    }
}

impl Standard<'_> {
    fn summary_message(&self, judged: &Judged<'_, '_>, status: Status) -> String {
        let matters = |(c, priority): &(&Input<'_>, Priority)| {
            *priority != Priority::Info || (status == Status::True && !c.message.is_empty())
        };
        let shown = judged.each().filter(matters).map(|(c, _)| c);
        if let Some(rule) = &self.lines {
            let each = shown.map(|c| {
                let mut line = String::new();
                lines::condition(&mut line, c);
                line
            });
            return rule(each.collect()).join("\n");
        }
        let mut message = String::new();
        for (i, input) in shown.enumerate() {
            if i > 0 {
                message.push('\n');
            }
            lines::condition(&mut message, input);
        }
        message
    }
}
