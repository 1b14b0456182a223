//! What an aggregate may overlook while an operation runs: more objects than desired, and some that come or go.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::merge::{INFO_REPORTED, ISSUES_REPORTED, Input, MergeError, Priority};
use crate::plural::pluralize;
use crate::severity::Severity;
use crate::{Aggregate, Conditioned, Draft, Metav1, Status, severity};

/// Where an object is in its life, as the caller knows it from the object.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use kube_status::Phase;
/// fn phase(metadata: &ObjectMeta, joined: bool) -> Phase {
///     match (&metadata.deletion_timestamp, joined) {
///         (Some(_), _) => Phase::Deleting,
///         (None, false) => Phase::Provisioning,
///         (None, true) => Phase::Steady,
///     }
/// }
/// assert_eq!(phase(&ObjectMeta::default(), false), Phase::Provisioning);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It should be well.
    Steady,
    /// It is being made.
    Provisioning,
    /// It is being taken away.
    Deleting,
}

/// How many objects may be there beyond the desired number, and how many may be unwell because they come or go.
///
/// An object that is allowed for does not make the aggregate bad; the message still counts it. What goes beyond the
/// allowance counts as it always does.
///
/// ```
/// use kube_status::Allowance;
/// let upgrade = Allowance::new(3).extra(1).provisioning(1).deleting(1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    desired: usize,
    extra: usize,
    provisioning: usize,
    deleting: usize,
}

impl Allowance {
    /// The reason when there are more objects than desired and allowed, in generation 1.
    ///
    /// ```
    /// assert_eq!(kube_status::Allowance::TOO_MANY, "TooManyObjects");
    /// ```
    pub const TOO_MANY: &'static str = "TooManyObjects";

    /// The desired number of objects; nothing else is allowed.
    ///
    /// ```
    /// use kube_status::Allowance;
    /// assert_eq!(Allowance::new(3), Allowance::new(3).extra(0).provisioning(0).deleting(0));
    /// ```
    pub const fn new(desired: usize) -> Self {
        Self {
            desired,
            extra: 0,
            provisioning: 0,
            deleting: 0,
        }
    }

    /// So many objects more than desired.
    ///
    /// ```
    /// let surge = kube_status::Allowance::new(3).extra(1);
    /// # let _ = surge;
    /// ```
    #[must_use]
    pub const fn extra(mut self, extra: usize) -> Self {
        self.extra = extra;
        self
    }

    /// So many objects that are unwell while they are being made.
    ///
    /// ```
    /// let scaling_up = kube_status::Allowance::new(5).provisioning(2);
    /// # let _ = scaling_up;
    /// ```
    #[must_use]
    pub const fn provisioning(mut self, provisioning: usize) -> Self {
        self.provisioning = provisioning;
        self
    }

    /// So many objects that are unwell while they are being taken away.
    ///
    /// ```
    /// let scaling_down = kube_status::Allowance::new(3).extra(2).deleting(2);
    /// # let _ = scaling_down;
    /// ```
    #[must_use]
    pub const fn deleting(mut self, deleting: usize) -> Self {
        self.deleting = deleting;
        self
    }

    /// Which of the unwell are allowed for: by name, so that the choice does not depend on the order of a list.
    fn excused(&self, mut unwell: Vec<(Phase, &str, usize)>) -> Vec<(Phase, usize)> {
        unwell.sort_unstable();
        let mut left = [0, self.provisioning, self.deleting];
        unwell.retain(|(phase, _, _)| {
            let left = &mut left[*phase as usize];
            let allowed = *left > 0;
            *left = left.saturating_sub(1);
            allowed
        });
        unwell.into_iter().map(|(phase, _, at)| (phase, at)).collect()
    }

    fn surplus(&self, total: usize) -> usize {
        total.saturating_sub(self.desired)
    }
}

impl Aggregate<'_> {
    /// The aggregate of objects while an operation runs. More objects than allowed are a warning, where the target has
    /// a place for severities.
    ///
    /// ```
    /// use kube_status::{Aggregate, Allowance, Phase, Status};
    /// # use kube_status::{Condition, Conditioned, Draft};
    /// # struct Server(&'static str, Vec<Condition>);
    /// # impl Conditioned for Server {
    /// #     fn kind(&self) -> &str { "Server" }
    /// #     fn name(&self) -> &str { self.0 }
    /// #     fn generation(&self) -> i64 { 1 }
    /// #     fn conditions(&self) -> &[Condition] { &self.1 }
    /// # }
    /// # let up = || vec![Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// let (old, new) = (Server("m1", up()), Server("m2", vec![]));
    /// let allowance = Allowance::new(1).extra(1).provisioning(1);
    /// let objects = [(&old, Phase::Steady), (&new, Phase::Provisioning)];
    /// let ready = Aggregate::new("Ready").of_during(objects, &allowance)?;
    /// assert_eq!(ready.status, Status::True);
    /// assert_eq!(ready.message, "1 Server being provisioned (allowed)\n1 Server above the desired 1 (allowed)");
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    pub fn of_during<'o, C: Metav1 + 'o, T: Conditioned<C> + ?Sized + 'o>(
        &'o self,
        objects: impl IntoIterator<Item = (&'o T, Phase)>,
        allowance: &Allowance,
    ) -> Result<Draft<'static>, MergeError> {
        let (mut inputs, phases): (Vec<Input<'o>>, Vec<Phase>) = objects
            .into_iter()
            .map(|(object, phase)| (self.input(object), phase))
            .unzip();
        if inputs.is_empty() {
            return Err(MergeError::NoObjects);
        }
        let surplus = allowance.surplus(inputs.len());
        let kind = common_kind(inputs.iter().map(|i| i.owner.kind));
        let unwell = |i: &Input<'_>| Priority::of(i.status, self.polarity) != Priority::Info;
        let places = inputs
            .iter()
            .zip(phases)
            .enumerate()
            .filter(|(_, (input, _))| unwell(input));
        let excused = allowance.excused(
            places
                .map(|(at, (input, phase))| (phase, input.owner.name, at))
                .collect(),
        );
        let mut counts: BTreeMap<(Phase, &str), usize> = BTreeMap::new();
        for (phase, at) in &excused {
            *counts.entry((*phase, inputs[*at].owner.kind)).or_default() += 1;
        }
        let mut at = 0;
        inputs.retain(|_| {
            at += 1;
            !excused.iter().any(|(_, excused)| *excused == at - 1)
        });
        let mut draft = if inputs.is_empty() {
            Draft::new(self.target_name(), self.polarity.good(), INFO_REPORTED)
        } else {
            self.merge(inputs)?
        };
        let mut lines = String::from(&*draft.message);
        for ((phase, kind), count) in counts {
            let doing = if phase == Phase::Deleting {
                "deleted"
            } else {
                "provisioned"
            };
            line(&mut lines, &format!("{} being {doing} (allowed)", counted(count, kind)));
        }
        if surplus > allowance.extra && draft.status != self.polarity.bad() {
            draft.status = self.polarity.bad();
            draft.reason = ISSUES_REPORTED.into();
            draft = draft.graded(Some(Severity::Warning));
        }
        if surplus > 0 {
            let above = format!("{} above the desired {}", counted(surplus, &kind), allowance.desired);
            let message = if surplus > allowance.extra {
                format!("* {above}")
            } else {
                format!("{above} (allowed)")
            };
            line(&mut lines, &message);
        }
        Ok(draft.message(lines))
    }
}

impl severity::Aggregate<'_> {
    /// The aggregate of objects while an operation runs. Those that are allowed for still count in the total; more
    /// objects than allowed are a warning.
    ///
    /// ```
    /// use kube_status::severity::{Aggregate, Condition, Draft, Severity};
    /// use kube_status::{Allowance, Location, Phase, Status, Untyped};
    /// let server = |status: &str| {
    ///     let object = serde_json::json!({"kind": "Server", "status": {"conditions": [
    ///         {"type": "Ready", "status": status, "severity": "Info"},
    ///     ]}});
    ///     Untyped::<Condition>::read_at(&object, Location::STATUS)
    /// };
    /// let (old, new) = (server("True")?, server("False")?);
    /// let objects = [(&old, Phase::Steady), (&new, Phase::Provisioning)];
    /// let allowed = Allowance::new(1).extra(1).provisioning(1);
    /// let ready = Aggregate::new("ServersReady").of_during(objects, &allowed).expect("one has Ready");
    /// assert_eq!(ready.status(), Status::True);
    /// # Ok::<_, kube_status::Malformed>(())
    /// ```
    pub fn of_during<'o, T: Conditioned<severity::Condition> + ?Sized + 'o>(
        &self,
        objects: impl IntoIterator<Item = (&'o T, Phase)>,
        allowance: &Allowance,
    ) -> Option<severity::Draft<'static>> {
        let objects: Vec<(&T, Phase)> = objects.into_iter().collect();
        let unwell = |object: &T| {
            let ready = severity::find(object.conditions(), severity::READY);
            ready.is_some_and(|c| c.status() != Status::True)
        };
        let places = objects.iter().enumerate().filter(|(_, (object, _))| unwell(object));
        let excused = allowance.excused(
            places
                .map(|(at, (object, phase))| (*phase, object.name(), at))
                .collect(),
        );
        let counted = |at: usize| !excused.iter().any(|(_, excused)| *excused == at);
        let merged = self.aggregated(
            objects
                .iter()
                .enumerate()
                .map(|(at, (object, _))| (*object, counted(at))),
        );
        let total = objects.len();
        match merged {
            Some(draft) if draft.status() == Status::False => Some(draft),
            _ if allowance.surplus(total) > allowance.extra => {
                let message = format!("{total} of {} desired", allowance.desired);
                let target = self.target().to_owned();
                Some(severity::Draft::bad(
                    target,
                    Severity::Warning,
                    Allowance::TOO_MANY,
                    message,
                ))
            }
            other => other,
        }
    }
}

fn line(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}

fn counted(count: usize, kind: &str) -> String {
    let mut out = String::new();
    let _ = write!(out, "{count} ");
    out.push_str(&if count == 1 { kind.to_owned() } else { pluralize(kind) });
    out
}

/// The kind of all objects, or a word for a mixed crowd.
fn common_kind<'k>(mut kinds: impl Iterator<Item = &'k str>) -> String {
    let first = kinds.next().unwrap_or("Object");
    if kinds.all(|kind| kind == first) {
        first.to_owned()
    } else {
        "Object".to_owned()
    }
}
