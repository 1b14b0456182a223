//! From notices to events: which are the same, what they are called, what is still to be sent.
//!
//! An event's name is made from its content. So a repetition finds the event again, also after a restart of the
//! controller and also when the answer to its creation was lost.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSeries, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use serde_json::{Value, json};

use super::Notice;
use crate::limits::{EVENT_FIELD_LIMIT, cut_note, cut_reason};
use crate::whole_seconds;

/// Who reports: the component people filter by, and the process.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    pub(super) component: String,
    pub(super) instance: String,
}

/// The content of an event as one number; equal for equal content in every release of this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Content(u64);

impl Content {
    pub(super) fn of(reporter: &Reporter, about: &ObjectReference, notice: &Notice) -> Self {
        let mut fields: Vec<&str> = vec![&reporter.component];
        fields.extend(reference(about));
        fields.extend([notice.kind.as_str(), &notice.reason, &notice.action, &notice.note]);
        fields.extend(notice.related.iter().flat_map(reference));
        Self(fnv1a(&fields))
    }
}

fn reference(object: &ObjectReference) -> [&str; 6] {
    [
        &object.api_version,
        &object.kind,
        &object.namespace,
        &object.name,
        &object.uid,
        &object.field_path,
    ]
    .map(|field| field.as_deref().unwrap_or_default())
}

/// FNV-1a, 64 bits, with a separator that no field contains.
fn fnv1a(fields: &[&str]) -> u64 {
    let bytes = fields.iter().flat_map(|field| field.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A notice and how often it was given since it was last sent.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) content: Content,
    pub(super) about: ObjectReference,
    pub(super) notice: Notice,
    pub(super) times: i32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// Notices that wait to be sent, repetitions already counted; bounded for each object, so that one that floods costs
/// no other a word, and many that have little to say each are all heard.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: Vec<Pending>,
    /// Where an event stands among those that wait.
    places: BTreeMap<Content, usize>,
    /// How many events of an object wait: by namespace, name and kind.
    of_object: HashMap<[Option<String>; 3], usize>,
    room: usize,
}

impl Backlog {
    pub(super) fn new(room: usize) -> Self {
        Self {
            waiting: Vec::new(),
            places: BTreeMap::new(),
            of_object: HashMap::new(),
            room,
        }
    }

    /// Takes a notice in; `false` when there is no room for another event of this object.
    pub(super) fn add(&mut self, content: Content, about: &ObjectReference, notice: Notice, now: Timestamp) -> bool {
        let same = self.places.get(&content).and_then(|place| self.waiting.get_mut(*place));
        if let Some(same) = same {
            same.times = same.times.saturating_add(1);
            same.last = now;
            return true;
        }
        let object = [about.namespace.clone(), about.name.clone(), about.kind.clone()];
        let waiting = self.of_object.entry(object).or_default();
        if *waiting >= self.room {
            return false;
        }
        *waiting += 1;
        self.places.insert(content, self.waiting.len());
        let about = about.clone();
        self.waiting.push(Pending {
            content,
            about,
            notice,
            times: 1,
            first: now,
            last: now,
        });
        true
    }

    pub(super) fn take(&mut self) -> Vec<Pending> {
        self.places.clear();
        self.of_object.clear();
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// An event in the cluster as far as it matters for its next repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) count: i32,
    pub(super) first: Timestamp,
}

impl Pending {
    /// The namespace of the event: the object's own; events about cluster-scoped objects live in `default`.
    pub(super) fn namespace(&self) -> &str {
        self.about
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or("default")
    }

    /// The name of the event: the object's, and a number made of the content.
    pub(super) fn name(&self) -> String {
        // A name holds 253 bytes, 17 of which go to the number and its dot.
        let object = self.about.name.as_deref().unwrap_or_default();
        let object = cut_reason(object, 236).trim_end_matches(['.', '-']);
        let object = if object.is_empty() { "event" } else { object };
        format!("{object}.{:016x}", self.content.0)
    }

    /// What the event will be once this is sent.
    pub(super) fn after(&self, before: Option<Sent>) -> Sent {
        match before {
            Some(sent) => Sent {
                count: sent.count.saturating_add(self.times),
                first: sent.first,
            },
            None => Sent {
                count: self.times,
                first: self.first,
            },
        }
    }

    /// The event as it is created.
    pub(super) fn event(&self, reporter: &Reporter, sent: Sent) -> Event {
        let word = |text: &str, fallback: &str| {
            let cut = cut_reason(text, EVENT_FIELD_LIMIT);
            if cut.is_empty() {
                fallback.to_owned()
            } else {
                cut.to_owned()
            }
        };
        Event {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: Some(self.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: self.about.clone(),
            type_: Some(self.notice.kind.as_str().to_owned()),
            reason: Some(word(&self.notice.reason, "NoReason")),
            message: Some(cut_note(&self.notice.note).into_owned()),
            action: Some(word(&self.notice.action, "Reconcile")),
            related: self.notice.related.clone(),
            source: Some(EventSource {
                component: Some(reporter.component.clone()),
                host: None,
            }),
            reporting_component: Some(reporter.component.clone()),
            reporting_instance: Some(word(&reporter.instance, &reporter.component)),
            event_time: Some(MicroTime(sent.first)),
            first_timestamp: Some(Time(whole_seconds(sent.first))),
            last_timestamp: Some(Time(whole_seconds(self.last))),
            count: Some(sent.count),
            // The API server refuses a series of one.
            series: (sent.count > 1).then_some(EventSeries {
                count: Some(sent.count),
                last_observed_time: Some(MicroTime(self.last)),
            }),
        }
    }

    /// The merge patch that counts the repetition.
    pub(super) fn repetition(&self, sent: Sent) -> Value {
        json!({
            "count": sent.count,
            "lastTimestamp": Time(whole_seconds(self.last)),
            "series": {"count": sent.count, "lastObservedTime": MicroTime(self.last)},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            namespace: Some("shop".to_owned()),
            ..ObjectReference::default()
        }
    }

    fn reporter() -> Reporter {
        Reporter {
            component: "shop-controller".to_owned(),
            instance: "pod-1".to_owned(),
        }
    }

    fn content(about: &ObjectReference, notice: &Notice) -> Content {
        Content::of(&reporter(), about, notice)
    }

    fn pending(name: &str, notice: Notice) -> Pending {
        let about = about(name);
        let at = Timestamp::UNIX_EPOCH;
        Pending {
            content: content(&about, &notice),
            about,
            notice,
            times: 1,
            first: at,
            last: at,
        }
    }

    #[test]
    fn everything_but_the_time_makes_a_different_event() {
        let base = || Notice::normal("R", "n");
        let known = content(&about("a"), &base());
        assert_eq!(content(&about("a"), &base()), known);
        let uid = ObjectReference {
            uid: Some("u".to_owned()),
            ..about("a")
        };
        let others = [
            content(&about("b"), &base()),
            content(&uid, &base()),
            content(&about("a"), &Notice::warning("R", "n")),
            content(&about("a"), &Notice::normal("Rn", "")),
            content(&about("a"), &Notice::normal("R", "other note")),
            content(&about("a"), &base().action("A")),
            content(&about("a"), &base().related(about("c"))),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(*other, known, "case {index}");
        }
    }

    #[test]
    fn the_name_is_stable_across_releases_and_valid_for_any_object() {
        assert_eq!(pending("web", Notice::normal("R", "n")).name(), "web.a51c387dfbce4daf");
        let long = pending(&"x".repeat(253), Notice::normal("R", "n")).name();
        assert!(long.len() <= 253, "{}", long.len());
        assert!(pending("", Notice::normal("R", "n")).name().starts_with("event."));
    }

    #[test]
    fn repetitions_are_counted_before_they_are_sent_and_room_is_bounded() {
        let mut backlog = Backlog::new(2);
        let mut add = |name: &str, words: &str| {
            let notice = Notice::normal("R", words);
            backlog.add(
                content(&about(name), &notice),
                &about(name),
                notice,
                Timestamp::UNIX_EPOCH,
            )
        };
        assert!(add("a", "1") && add("a", "1") && add("a", "2") && add("a", "1"));
        assert!(!add("a", "3"), "no room for a third event of this object");
        assert!(add("a", "2"), "but a repetition needs none");
        assert!(
            (0..500).all(|other| add(&other.to_string(), "1")),
            "and others have theirs"
        );
        let counts: Vec<_> = backlog.take().iter().map(|waiting| waiting.times).collect();
        assert_eq!(counts[..3], [3, 2, 1]);
        assert_eq!(counts.len(), 502);
        assert!(backlog.is_empty());
    }

    #[test]
    fn an_event_keeps_within_what_the_api_server_takes() {
        let wild = Notice::warning("R".repeat(300), "ä".repeat(900)).action("");
        let event = pending("web", wild).event(
            &reporter(),
            Sent {
                count: 1,
                first: Timestamp::UNIX_EPOCH,
            },
        );
        assert_eq!(event.reason.unwrap().len(), 128);
        assert!(event.message.unwrap().len() <= 1_024);
        assert_eq!(event.action.as_deref(), Some("Reconcile"));
        assert_eq!(event.series, None);
        let nameless = pending("web", Notice::normal("", "")).event(
            &reporter(),
            Sent {
                count: 2,
                first: Timestamp::UNIX_EPOCH,
            },
        );
        assert_eq!(nameless.reason.as_deref(), Some("NoReason"));
        assert_eq!(nameless.series.unwrap().count, Some(2));
    }

    #[test]
    fn events_about_cluster_scoped_objects_live_in_default() {
        let mut node = pending("n1", Notice::normal("R", "n"));
        assert_eq!(node.namespace(), "shop");
        node.about.namespace = None;
        assert_eq!(node.namespace(), "default");
    }
}
