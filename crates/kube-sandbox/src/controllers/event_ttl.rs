//! Deletes events an hour after they were last written.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject};

use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Sink};

const LIFE: i64 = 3600;

/// Follows events and keeps only the time at which each expires.
pub struct Births {
    queue: Arc<Queue<ObjectKey>>,
}

impl Births {
    /// A listener that queues events for the time at which they expire.
    pub fn new(queue: &Arc<Queue<ObjectKey>>) -> Arc<Self> {
        Arc::new(Self { queue: queue.clone() })
    }
}

/// Seconds an event has left.
fn left(times: &[Option<Timestamp>], now: Timestamp) -> i64 {
    let last = times.iter().flatten().max();
    last.map_or(0, |last| last.as_second() + LIFE - now.as_second())
}

impl Sink for Births {
    fn list_begins(&self) {}
    fn list_ends(&self) {}
    fn deleted(&self, _: &DynamicObject) {}

    fn listed(&self, object: &DynamicObject) {
        self.applied(object);
    }

    fn applied(&self, object: &DynamicObject) {
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        let time = |field: &str| object.data.get(field)?.as_str()?.parse().ok();
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let left = left(&[created, time("lastTimestamp"), time("eventTime")], Timestamp::now());
        self.queue
            .add_after(key, Duration::from_secs(left.max(0).unsigned_abs()));
    }
}

/// Deletes expired events.
pub struct EventTtl {
    plane: Plane,
}

impl EventTtl {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self { plane: plane.clone() }
    }
}

impl Controller for EventTtl {
    const NAME: &'static str = "event-ttl";
    const WORKERS: usize = 1;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let api: Api<Event> = Api::namespaced(self.plane.client.clone(), &key.namespace);
        let Some(event) = api.get_opt(&key.name).await? else {
            return Ok(None);
        };
        let times = [
            event.metadata.creation_timestamp.as_ref().map(|time| time.0),
            event.last_timestamp.as_ref().map(|time| time.0),
            event.event_time.as_ref().map(|time| time.0),
            event
                .series
                .and_then(|series| series.last_observed_time)
                .map(|time| time.0),
        ];
        let left = left(&times, Timestamp::now());
        if left > 0 {
            return Ok(Some(Duration::from_secs(left.unsigned_abs())));
        }
        match api.delete(&key.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            other => Ok(other.map(|_| None)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_lives_an_hour_from_its_last_time() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let now = Timestamp::from_second(10_000).unwrap();
        assert_eq!(left(&[at(9_000), None], now), 2_600);
        assert_eq!(left(&[at(1_000), at(9_900)], now), 3_500);
        assert!(left(&[at(1_000)], now) < 0);
    }
}
