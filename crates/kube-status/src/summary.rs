//! Several conditions of one object, summarised as one.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::merge::{Input, MergeError, Operation, Owner, Standard, Strategy};
use crate::{Change, Conditioned, ConditionedMut, Draft, Metav1, find, set};

/// Which conditions a summary reads, and how it merges them. Build it once, use it in every reconcile.
///
/// An expected condition that is missing counts as unknown. The message has one line for each condition that is an
/// issue or unknown, in the order of the types; when all is well, one for each good condition that has a message. Of
/// conditions with severities ([`GradedCondition`](crate::GradedCondition)) the summary has the worst among the issues.
///
/// ```
/// use kube_status::{Draft, Order, Status, Summary, set_in};
/// # use kube_status::{Condition, Conditioned};
/// # struct Cache { conditions: Vec<Condition> }
/// # impl Conditioned for Cache {
/// #     fn kind(&self) -> &str { "Cache" }
/// #     fn name(&self) -> &str { "c" }
/// #     fn generation(&self) -> i64 { 1 }
/// #     fn conditions(&self) -> &[Condition] { &self.conditions }
/// # }
/// # let now = jiff::Timestamp::UNIX_EPOCH;
/// # let mut cache = Cache { conditions: vec![] };
/// let _ = set_in(&mut cache.conditions, Draft::new("ConfigReady", Status::True, "Applied"), 1, now, &Order::STANDARD);
/// let ready = Summary::new("Ready").types(["ConfigReady", "DatabaseReady"]).of(&cache)?;
/// assert_eq!(ready.status, Status::Unknown);
/// assert_eq!(ready.message, "* DatabaseReady: Condition not yet reported");
/// # Ok::<_, kube_status::merge::MergeError>(())
/// ```
pub struct Summary<'a> {
    target: Cow<'a, str>,
    types: Vec<Cow<'a, str>>,
    optional: Vec<Cow<'a, str>>,
    overrides: Vec<Draft<'a>>,
    standard: Standard<'static>,
    strategy: Option<&'a dyn Strategy>,
}

impl std::fmt::Debug for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary")
            .field("target", &self.target)
            .field("types", &self.types)
            .field("optional", &self.optional)
            .field("overrides", &self.overrides)
            .field("standard", &self.standard)
            .finish_non_exhaustive()
    }
}

impl<'a> Summary<'a> {
    /// A summary of type `target`, of positive polarity.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Summary, merge::MergeError};
    /// assert_eq!(Summary::new("Ready").of(&cache), Err(MergeError::NoTypes));
    /// ```
    pub fn new(target: impl Into<Cow<'a, str>>) -> Self {
        Self {
            target: target.into(),
            types: Vec::new(),
            optional: Vec::new(),
            overrides: Vec::new(),
            standard: Standard::new(),
            strategy: None,
        }
    }

    /// The types in scope, the most relevant first.
    ///
    /// ```
    /// let ready = kube_status::Summary::new("Ready").types(["ConfigReady", "MembersReady"]);
    /// # let _ = ready;
    /// ```
    #[must_use]
    pub fn types<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = types.into_iter().map(Into::into).collect();
        self
    }

    /// The types of which `True` is bad. A strategy of the caller's own decides for itself.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Draft, Negative, Status, Summary, set};
    /// let _ = set(&mut cache, Draft::bad(Negative("ScalingUp"), "OneMore"), now);
    /// let ready = Summary::new("Ready").types(["ScalingUp"]).negative(["ScalingUp"]).of(&cache)?;
    /// assert_eq!(ready.status, Status::False);
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    #[must_use]
    pub fn negative<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.standard = self.standard.negative(types);
        self
    }

    /// The types that may be missing: they count only when present.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Draft, Status, Summary, set};
    /// let _ = set(&mut cache, Draft::good("ConfigReady", "Applied"), now);
    /// let ready = Summary::new("Ready").types(["ConfigReady", "BackupReady"]).ignore_if_missing(["BackupReady"]).of(&cache)?;
    /// assert_eq!(ready.status, Status::True);
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    #[must_use]
    pub fn ignore_if_missing<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.optional = types.into_iter().map(Into::into).collect();
        self
    }

    /// What stands in for a condition in this summary alone; the object keeps its own.
    ///
    /// ```
    /// use kube_status::{Draft, Status, Summary};
    /// let known = Draft::new("EtcdHealthy", Status::True, "Maintenance");
    /// let summary = Summary::new("Ready").types(["EtcdHealthy"]).overriding([known]);
    /// ```
    #[must_use]
    pub fn overriding(mut self, drafts: impl IntoIterator<Item = Draft<'a>>) -> Self {
        self.overrides = drafts.into_iter().collect();
        self
    }

    /// The reasons for issues, unknowns and good news; a strategy of the caller's own has its own.
    ///
    /// ```
    /// use kube_status::Summary;
    /// let ready = Summary::new("Ready").types(["ConfigReady"]).reasons("NotReady", "NotKnown", "AllSystemsGo");
    /// ```
    #[must_use]
    pub fn reasons(mut self, issues: impl Into<String>, unknown: impl Into<String>, info: impl Into<String>) -> Self {
        self.standard = self.standard.reasons(issues, unknown, info);
        self
    }

    /// The message when all is well, instead of the good conditions' own.
    ///
    /// ```
    /// # use kube_status::{Condition, Conditioned, Draft, Status};
    /// # struct Cache { conditions: Vec<Condition> }
    /// # impl Conditioned for Cache {
    /// #     fn kind(&self) -> &str { "Cache" }
    /// #     fn name(&self) -> &str { "c" }
    /// #     fn generation(&self) -> i64 { 1 }
    /// #     fn conditions(&self) -> &[Condition] { &self.conditions }
    /// # }
    /// # let up = Draft::new("Available", Status::True, "Up").message("3 of 3").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// # let cache = Cache { conditions: vec![up] };
    /// use kube_status::Summary;
    /// let ready = Summary::new("Ready").types(["Available"]).all_well("All components are ready").of(&cache)?;
    /// assert_eq!(ready.message, "All components are ready");
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    #[must_use]
    pub fn all_well(mut self, message: impl Into<String>) -> Self {
        self.standard = self.standard.all_well(message);
        self
    }

    /// Another way to merge.
    ///
    /// ```
    /// use kube_status::Summary;
    /// use kube_status::merge::Standard;
    /// let short = Standard::new().lines(|mut lines| { lines.truncate(5); lines });
    /// let ready = Summary::new("Ready").types(["ConfigReady"]).strategy(&short);
    /// # let _ = ready;
    /// ```
    #[must_use]
    pub fn strategy(mut self, strategy: &'a dyn Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// The summary of an object, not yet set on it.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Draft, Summary, set};
    /// let _ = set(&mut cache, Draft::bad("ConfigReady", "BadValue"), now);
    /// assert_eq!(Summary::new("Ready").types(["ConfigReady"]).of(&cache)?.message, "* ConfigReady: BadValue");
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    pub fn of<C: Metav1, T: Conditioned<C> + ?Sized>(&self, object: &T) -> Result<Draft<'static>, MergeError> {
        let inputs = self.inputs(object)?;
        let types: Vec<&str> = self.types.iter().map(AsRef::as_ref).collect();
        let strategy: &dyn Strategy = self.strategy.unwrap_or(&self.standard);
        let merged = strategy.merge(Operation::Summary, inputs, &types)?;
        Ok(merged.into_draft(self.target.clone().into_owned()))
    }

    /// Summarises an object on itself.
    ///
    /// ```
    /// use kube_status::{Change, ConditionedMut, Summary, merge::MergeError};
    /// fn report<T: ConditionedMut>(object: &mut T, now: jiff::Timestamp) -> Result<Change, MergeError> {
    ///     Summary::new("Ready").types(["ConfigReady"]).set(object, now)
    /// }
    /// ```
    pub fn set<C: Metav1, T: ConditionedMut<C> + ?Sized>(
        &self,
        object: &mut T,
        now: Timestamp,
    ) -> Result<Change, MergeError> {
        let draft = self.of(object)?;
        Ok(set(object, draft, now))
    }

    fn inputs<'o, C: Metav1 + 'o, T: Conditioned<C> + ?Sized>(
        &'o self,
        object: &'o T,
    ) -> Result<Vec<Input<'o>>, MergeError> {
        if self.types.is_empty() {
            return Err(MergeError::NoTypes);
        }
        if self.types.contains(&self.target) {
            return Err(MergeError::TargetAmongTypes(self.target.clone().into_owned()));
        }
        let conditions = object.conditions();
        for (i, draft) in self.overrides.iter().enumerate() {
            let type_ = || draft.type_.clone().into_owned();
            if self.overrides[..i].iter().any(|earlier| earlier.type_ == draft.type_) {
                return Err(MergeError::OverrideTwice(type_()));
            }
            if find(conditions, &draft.type_).is_none() {
                return Err(MergeError::OverrideNotOnObject(type_()));
            }
        }
        let owner = Owner::of(object);
        let mut inputs = Vec::with_capacity(self.types.len());
        for condition in conditions {
            let type_ = &condition.plain().type_;
            if !self.types.iter().any(|t| t == type_) {
                continue;
            }
            let stated = self.overrides.iter().find(|draft| draft.type_ == *type_);
            inputs.push(stated.map_or_else(|| Input::stored(owner, condition), |draft| Input::stated(owner, draft)));
        }
        for (i, type_) in self.types.iter().enumerate() {
            let absent = find(conditions, type_).is_none() && !self.types[..i].contains(type_);
            if absent && !self.optional.contains(type_) {
                inputs.push(Input::missing(owner, type_, "Condition not yet reported"));
            }
        }
        if inputs.is_empty() {
            return Err(MergeError::NothingToSummarise);
        }
        Ok(inputs)
    }
}
