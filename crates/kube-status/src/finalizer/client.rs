//! The finalizer at work on the API.

use std::fmt::{self, Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::deadline::{Cleaned, Deadline, Done, Moment, Next, Release};
use crate::events::Recorder;
use crate::{Condition, Draft};

/// How often a patch of the finalizers is tried when others change the object meanwhile.
const ATTEMPTS: usize = 5;

/// What a controller does before it lets an object go. Both parts are run again after a failure and must not mind.
///
/// ```
/// use kube_status::finalizer::{Cleaned, Cleanup};
///
/// struct Volumes;
///
/// impl Cleanup<k8s_openapi::api::core::v1::Pod> for Volumes {
///     type Error = std::io::Error;
///
///     async fn safe_part(&self, _: &k8s_openapi::api::core::v1::Pod) -> Result<(), Self::Error> {
///         Ok(()) // take owner references off what is to be kept
///     }
///
///     async fn cleanup(&self, _: &k8s_openapi::api::core::v1::Pod) -> Result<Cleaned, Self::Error> {
///         Ok(Cleaned::Pending("Waiting for 2 pods".into()))
///     }
/// }
/// ```
pub trait Cleanup<K>: Send + Sync {
    /// Why a part failed, for people.
    type Error: Display + Send;

    /// Cheap, and enough to protect what must outlive the object. Runs first in every reconcile, also after the deadline;
    /// the object is not released before it has succeeded.
    fn safe_part(&self, object: &K) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Everything else. Cancelled when its time is over, and given up at the deadline.
    fn cleanup(&self, object: &K) -> impl Future<Output = Result<Cleaned, Self::Error>> + Send;
}

/// The outcome of [`Finalizer::reconcile`].
///
/// ```
/// use kube_status::finalizer::Finalization;
/// fn goes_on<K>(outcome: &Finalization<K>) -> bool {
///     matches!(outcome, Finalization::Live | Finalization::Held(_))
/// }
/// assert!(goes_on(&Finalization::<()>::Live));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "says whether to go on with the reconcile"]
pub enum Finalization<K> {
    /// The object lives and is held: go on with the reconcile.
    Live,
    /// The object lives and is held from now on: go on with this version of it.
    Held(Box<K>),
    /// Being deleted: write this condition and requeue.
    Deleting {
        /// The [`DELETING`](super::DELETING) condition.
        draft: Draft<'static>,
        /// When to reconcile again.
        retry_after: Duration,
    },
    /// Released just now: nothing more to do, and no status to write.
    Released,
    /// Being deleted and not held by us, or not found: nothing to do.
    NotHeld,
}

/// Why a finalizer could not be added or removed.
///
/// ```
/// use kube_status::finalizer::FinalizerError;
/// let error = FinalizerError::Unidentified { finalizer: "shop.io/cleanup".into(), field: "metadata.uid" };
/// assert!(error.to_string().starts_with("finalizer shop.io/cleanup not changed"));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum FinalizerError {
    /// The object has no name or uid.
    #[error("finalizer {finalizer} not changed: the object has no {field}; pass an object read from the API")]
    Unidentified {
        /// Our finalizer.
        finalizer: String,
        /// What is missing.
        field: &'static str,
    },
    /// Others changed the object every time.
    #[error("finalizer {finalizer} of {object} not changed: the object changed {ATTEMPTS} times meanwhile; try again")]
    Contended {
        /// Our finalizer.
        finalizer: String,
        /// Name of the object.
        object: String,
    },
    /// The API server rejected the change, or could not be reached.
    #[error("finalizer {finalizer} of {object} not changed: the API server rejected it or did not respond")]
    Api {
        /// Our finalizer.
        finalizer: String,
        /// Name of the object.
        object: String,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Holds objects until they are cleaned up, and not longer than the [`Deadline`].
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_status::events::RecordedEvents;
/// use kube_status::finalizer::{Cleanup, DELETING, Finalizer, FinalizerError, Finalization};
///
/// # async fn run(api: kube::Api<ConfigMap>, object: ConfigMap, mine: impl Cleanup<ConfigMap>) -> Result<(), FinalizerError> {
/// let finalizer = Finalizer::new("shop.io/cleanup", RecordedEvents::default());
/// let before = None; // find(&object.status.conditions, DELETING)
/// match finalizer.reconcile(&api, &object, &(), before, &mine).await? {
///     Finalization::Live => println!("reconcile"),
///     Finalization::Held(object) => println!("reconcile {:?}", object.metadata.resource_version),
///     Finalization::Deleting { draft, retry_after } => println!("write {draft:?}, requeue after {retry_after:?}"),
///     Finalization::Released | Finalization::NotHeld => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Finalizer<R> {
    name: String,
    recorder: R,
    deadline: Deadline,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl<R: Debug> Debug for Finalizer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finalizer")
            .field("name", &self.name)
            .field("recorder", &self.recorder)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl<R: Recorder> Finalizer<R> {
    /// A finalizer of this name, which tells its steps to the recorder.
    ///
    /// ```
    /// use kube_status::events::RecordedEvents;
    /// use kube_status::finalizer::Finalizer;
    /// let finalizer = Finalizer::new("shop.io/cleanup", RecordedEvents::default());
    /// # let _ = finalizer;
    /// ```
    pub fn new(name: impl Into<String>, recorder: R) -> Self {
        Self {
            name: name.into(),
            recorder,
            deadline: Deadline::default(),
            clock: Arc::new(Timestamp::now),
        }
    }

    /// Another deadline than 30 s and 60 s.
    ///
    /// ```
    /// use jiff::SignedDuration;
    /// use kube_status::events::RecordedEvents;
    /// use kube_status::finalizer::{Deadline, Finalizer};
    /// let patient = Deadline { release_after: SignedDuration::from_mins(10), ..Deadline::default() };
    /// let finalizer = Finalizer::new("shop.io/cleanup", RecordedEvents::default()).deadline(patient);
    /// # let _ = finalizer;
    /// ```
    #[must_use]
    pub fn deadline(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }

    /// Where the time comes from; the system's clock if not given. A test gives one that it can turn.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use kube_status::events::RecordedEvents;
    /// use kube_status::finalizer::Finalizer;
    ///
    /// let time = Arc::new(Mutex::new(jiff::Timestamp::UNIX_EPOCH));
    /// let shown = time.clone();
    /// let finalizer = Finalizer::new("shop.io/cleanup", RecordedEvents::default()).clock(move || *shown.lock().unwrap());
    /// # let _ = finalizer;
    /// ```
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            ..self
        }
    }

    /// Reconciles one object: adds the finalizer when it is new, and does what [`Deadline::next`] decides while it is deleted.
    ///
    /// `before` is the object's [`DELETING`](super::DELETING) condition, if it has one.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_status::events::RecordedEvents;
    /// # use kube_status::finalizer::{Cleanup, Finalizer, FinalizerError, Finalization};
    /// # async fn run(api: kube::Api<ConfigMap>, object: ConfigMap, mine: impl Cleanup<ConfigMap>) -> Result<(), FinalizerError> {
    /// let finalizer = Finalizer::new("shop.io/cleanup", RecordedEvents::default());
    /// if let Finalization::Deleting { draft, .. } = finalizer.reconcile(&api, &object, &(), None, &mine).await? {
    ///     println!("not gone yet: {}", draft.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reconcile<K, C>(
        &self,
        api: &Api<K>,
        object: &K,
        kind: &K::DynamicType,
        before: Option<&Condition>,
        cleanup: &C,
    ) -> Result<Finalization<K>, FinalizerError>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Sync,
        C: Cleanup<K>,
    {
        let mut done = Done::Nothing;
        loop {
            let moment = self.moment(object);
            let next = self.deadline.next(&moment, &done);
            match next {
                Next::Live => return Ok(Finalization::Live),
                Next::NotHeld => return Ok(Finalization::NotHeld),
                Next::Hold => return self.hold(api, object).await,
                Next::SafePart => done = Done::SafePart(self.safe_part(object, cleanup).await),
                Next::Cleanup { budget } => done = Done::Cleanup(run(budget, cleanup.cleanup(object)).await),
                Next::Release(ref release) => {
                    self.release(api, object).await?;
                    if let Release::GivenUp(open) = release {
                        tracing::warn!(object = object.name_any(), open, "cleanup given up");
                    }
                    self.record(object, kind, &moment, &done, &next, before);
                    return Ok(Finalization::Released);
                }
                Next::Wait(after) => {
                    let draft = self.record(object, kind, &moment, &done, &next, before);
                    let Some(draft) = draft else {
                        return Ok(Finalization::NotHeld);
                    };
                    return Ok(Finalization::Deleting {
                        draft,
                        retry_after: after.unsigned_abs(),
                    });
                }
            }
        }
    }

    fn moment<K: Resource>(&self, object: &K) -> Moment {
        Moment {
            deletion_timestamp: object.meta().deletion_timestamp.as_ref().map(|time| time.0),
            held: object.finalizers().contains(&self.name),
            now: (self.clock)(),
        }
    }

    async fn safe_part<K, C: Cleanup<K>>(&self, object: &K, cleanup: &C) -> Result<(), String> {
        run(self.deadline.retry_every, cleanup.safe_part(object)).await
    }

    fn record<K: Resource>(
        &self,
        object: &K,
        kind: &K::DynamicType,
        moment: &Moment,
        done: &Done,
        next: &Next,
        before: Option<&Condition>,
    ) -> Option<Draft<'static>> {
        let report = self.deadline.report(&K::kind(kind), moment, done, next, before)?;
        let about = object.object_ref(kind);
        for notice in report.notices {
            self.recorder.record(&about, notice);
        }
        Some(report.draft)
    }

    /// Puts the finalizer on, under the version that was read: an object is never held twice.
    async fn hold<K>(&self, api: &Api<K>, object: &K) -> Result<Finalization<K>, FinalizerError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        let mut latest = object.clone();
        for _ in 0..ATTEMPTS {
            if latest.meta().deletion_timestamp.is_some() {
                return Ok(Finalization::NotHeld);
            }
            if latest.finalizers().contains(&self.name) {
                return Ok(Finalization::Held(Box::new(latest)));
            }
            let version = latest
                .resource_version()
                .ok_or_else(|| self.unidentified("metadata.resourceVersion"))?;
            let add = if latest.finalizers().is_empty() {
                json!({"op": "add", "path": "/metadata/finalizers", "value": [self.name]})
            } else {
                json!({"op": "add", "path": "/metadata/finalizers/-", "value": self.name})
            };
            let steps = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version}, add]);
            match self.patch(api, &latest, steps).await? {
                Patched::Done(held) => return Ok(Finalization::Held(held)),
                Patched::NotFound => return Ok(Finalization::NotHeld),
                Patched::Changed(newer) => latest = *newer,
            }
        }
        Err(self.contended(object))
    }

    /// Takes the finalizer off, only where it is and only from the object that was meant.
    async fn release<K>(&self, api: &Api<K>, object: &K) -> Result<(), FinalizerError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        let uid = object.uid().ok_or_else(|| self.unidentified("metadata.uid"))?;
        let mut latest = object.clone();
        for _ in 0..ATTEMPTS {
            // Another object of the same name is not ours to release.
            if latest.uid().as_ref() != Some(&uid) {
                return Ok(());
            }
            let Some(at) = latest.finalizers().iter().position(|name| *name == self.name) else {
                return Ok(());
            };
            let path = format!("/metadata/finalizers/{at}");
            let steps = json!([
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "test", "path": path, "value": self.name},
                {"op": "remove", "path": path},
            ]);
            match self.patch(api, &latest, steps).await? {
                Patched::Done(_) | Patched::NotFound => return Ok(()),
                Patched::Changed(newer) => latest = *newer,
            }
        }
        Err(self.contended(object))
    }

    async fn patch<K>(&self, api: &Api<K>, object: &K, steps: Value) -> Result<Patched<K>, FinalizerError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        let name = object
            .meta()
            .name
            .as_deref()
            .ok_or_else(|| self.unidentified("metadata.name"))?;
        let steps: json_patch::Patch =
            serde_json::from_value(steps).map_err(|source| self.rejected(object, kube::Error::SerdeError(source)))?;
        let code = |error: &kube::Error| match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        match api
            .patch(name, &PatchParams::default(), &Patch::<()>::Json(steps))
            .await
        {
            Ok(patched) => return Ok(Patched::Done(Box::new(patched))),
            Err(error) if code(&error) == 404 => return Ok(Patched::NotFound),
            // A test that fails is 422 (some servers: 400), a race inside the API server 409: look what changed.
            Err(error) if matches!(code(&error), 400 | 409 | 422) => {}
            Err(error) => return Err(self.rejected(object, error)),
        }
        match api.get_opt(name).await {
            Ok(Some(newer)) => Ok(Patched::Changed(Box::new(newer))),
            Ok(None) => Ok(Patched::NotFound),
            Err(error) => Err(self.rejected(object, error)),
        }
    }

    fn unidentified(&self, field: &'static str) -> FinalizerError {
        FinalizerError::Unidentified {
            finalizer: self.name.clone(),
            field,
        }
    }

    fn contended(&self, object: &impl ResourceExt) -> FinalizerError {
        FinalizerError::Contended {
            finalizer: self.name.clone(),
            object: object.name_any(),
        }
    }

    fn rejected(&self, object: &impl ResourceExt, source: kube::Error) -> FinalizerError {
        FinalizerError::Api {
            finalizer: self.name.clone(),
            object: object.name_any(),
            source: Box::new(source),
        }
    }
}

enum Patched<K> {
    Done(Box<K>),
    Changed(Box<K>),
    NotFound,
}

/// Runs a part for at most `budget`; not answering is failing.
async fn run<T, E: Display>(budget: SignedDuration, part: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(budget.unsigned_abs(), part).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", budget.as_secs_f64())),
    }
}
