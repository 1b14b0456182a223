//! One condition of many objects, aggregated into one.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::merge::{Input, MergeError, Operation, Owner, Standard, Strategy};
use crate::{Change, Conditioned, ConditionedMut, Draft, Metav1, Polarity, find, set};

/// Reads one condition from every object and reports them as one.
///
/// An object without the condition counts as unknown. The message has at most three lines of what is wrong, grouped by
/// kind and by message, and counts the rest.
///
/// ```
/// use kube_status::{Aggregate, Status};
/// # use kube_status::{Condition, Conditioned};
/// # struct Server(&'static str);
/// # impl Conditioned for Server {
/// #     fn kind(&self) -> &str { "Server" }
/// #     fn name(&self) -> &str { self.0 }
/// #     fn generation(&self) -> i64 { 1 }
/// #     fn conditions(&self) -> &[Condition] { &[] }
/// # }
/// let servers = [Server("m2"), Server("m1")];
/// let ready = Aggregate::new("Ready").target("ServersReady").of(&servers)?;
/// assert_eq!(ready.status, Status::Unknown);
/// assert_eq!(ready.message, "* Servers m1, m2: Condition Ready not yet reported");
/// # Ok::<_, kube_status::merge::MergeError>(())
/// ```
pub struct Aggregate<'a> {
    source: Cow<'a, str>,
    target: Cow<'a, str>,
    missing: String,
    pub(crate) polarity: Polarity,
    standard: Standard<'static>,
    strategy: Option<&'a dyn Strategy>,
}

impl std::fmt::Debug for Aggregate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregate")
            .field("source", &self.source)
            .field("target", &self.target)
            .field("standard", &self.standard)
            .finish_non_exhaustive()
    }
}

impl<'a> Aggregate<'a> {
    /// Aggregates a positive type under its own name.
    ///
    /// ```
    /// use kube_status::Aggregate;
    /// let ready = Aggregate::new("Ready");
    /// # let _ = ready;
    /// ```
    pub fn new(source: impl Into<Cow<'a, str>>) -> Self {
        let source = source.into();
        Self {
            missing: format!("Condition {source} not yet reported"),
            target: source.clone(),
            source,
            polarity: Polarity::Positive,
            standard: Standard::new(),
            strategy: None,
        }
    }

    /// The type of the result.
    ///
    /// ```
    /// use kube_status::Aggregate;
    /// let ready = Aggregate::new("Ready").target("ServersReady");
    /// # let _ = ready;
    /// ```
    #[must_use]
    pub fn target(mut self, target: impl Into<Cow<'a, str>>) -> Self {
        self.target = target.into();
        self
    }

    /// The source's polarity; the target has the same. A strategy of the caller's own decides for itself.
    ///
    /// ```
    /// use kube_status::{Aggregate, Polarity};
    /// let scaling = Aggregate::new("ScalingUp").polarity(Polarity::Negative);
    /// ```
    #[must_use]
    pub fn polarity(mut self, polarity: Polarity) -> Self {
        let negative = (polarity == Polarity::Negative).then(|| self.source.clone());
        self.standard = Standard::new().target(polarity).negative(negative);
        self.polarity = polarity;
        self
    }

    /// Another way to merge.
    ///
    /// ```
    /// use kube_status::Aggregate;
    /// use kube_status::merge::Standard;
    /// let words = Standard::new().reasons("NotAllReady", "NotAllKnown", "AllReady");
    /// let ready = Aggregate::new("Ready").strategy(&words);
    /// # let _ = ready;
    /// ```
    #[must_use]
    pub fn strategy(mut self, strategy: &'a dyn Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// The aggregate of objects, not yet set anywhere.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Aggregate, Draft, Status, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", "Down").message("no quorum"), now);
    /// let draft = Aggregate::new("Ready").of([&cache])?;
    /// assert_eq!((draft.status, &*draft.message), (Status::False, "* Cache c: no quorum"));
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    pub fn of<'o, C: Metav1 + 'o, T: Conditioned<C> + ?Sized + 'o>(
        &'o self,
        objects: impl IntoIterator<Item = &'o T>,
    ) -> Result<Draft<'static>, MergeError> {
        let inputs: Vec<Input<'o>> = objects.into_iter().map(|object| self.input(object)).collect();
        if inputs.is_empty() {
            return Err(MergeError::NoObjects);
        }
        self.merge(inputs)
    }

    pub(crate) fn merge(&self, inputs: Vec<Input<'_>>) -> Result<Draft<'static>, MergeError> {
        let strategy: &dyn Strategy = self.strategy.unwrap_or(&self.standard);
        let merged = strategy.merge(Operation::Aggregate, inputs, &[&self.source])?;
        Ok(merged.into_draft(self.target_name()))
    }

    pub(crate) fn target_name(&self) -> String {
        self.target.clone().into_owned()
    }

    /// Aggregates objects onto another.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Aggregate, Change, Draft, find, set};
    /// # let mut owner = cache.clone();
    /// let _ = set(&mut cache, Draft::good("Ready", "Up"), now);
    /// let change = Aggregate::new("Ready").target("CachesReady").set([&cache], &mut owner, now)?;
    /// assert_eq!(change, Change::Status);
    /// # Ok::<_, kube_status::merge::MergeError>(())
    /// ```
    pub fn set<'o, C, T, D, U>(
        &'o self,
        objects: impl IntoIterator<Item = &'o T>,
        target: &mut U,
        now: Timestamp,
    ) -> Result<Change, MergeError>
    where
        C: Metav1 + 'o,
        T: Conditioned<C> + ?Sized + 'o,
        D: Metav1,
        U: ConditionedMut<D> + ?Sized,
    {
        let draft = self.of(objects)?;
        Ok(set(target, draft, now))
    }

    pub(crate) fn input<'o, C: Metav1 + 'o, T: Conditioned<C> + ?Sized>(&'o self, object: &'o T) -> Input<'o> {
        let owner = Owner::of(object);
        find(object.conditions(), &self.source).map_or_else(
            || Input::missing(owner, &self.source, &self.missing),
            |c| Input::stored(owner, c),
        )
    }
}
