//! The story the guide tells, as code that runs.

use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::events::{Notice, RecordedEvents, Recorder};
use kube_status::finalizer::{Cleaned, Deadline, Done, Moment};
use kube_status::readers::{Reading, explain, read_value};
use kube_status::tree::{Line, Node, View};
use kube_status::{
    Aggregate, Allowance, Condition, ConditionType, Conditioned, Draft, GradedCondition, Mirror, Ownership, Patch,
    Phase, Polarity, Reason, Status, Summary, documentation, find, set, severity,
};
use serde_json::json;

/// What a part of the story prints.
pub fn output(name: &str) -> String {
    match name {
        "first" => first(),
        "declared" => declared(),
        "summary" => summary(),
        "mirror" => mirror(),
        "aggregate" => aggregate(),
        "five-hundred" => five_hundred(),
        "patch" => patch(),
        "graded" => graded(),
        "severity" => severities(),
        "upgrade" => upgrade(),
        "readers" => readers(),
        "events" => events(),
        "finalizer" => finalizer(),
        "tree" => tree(),
        _ => panic!("the story prints nothing named {name}"),
    }
}

// [object]
/// A cache.
#[derive(Default, Conditioned)]
struct Cache {
    metadata: ObjectMeta,
    status: Option<CacheStatus>,
}

#[derive(Default)]
struct CacheStatus {
    conditions: Vec<Condition>,
}
// [end]

impl Cache {
    fn named(name: &str) -> Self {
        let mut cache = Self::default();
        cache.metadata.name = Some(name.to_owned());
        cache.metadata.generation = Some(1);
        cache
    }

    /// A cache of which one thing is known.
    fn with_condition(name: &str, draft: Draft<'_>) -> Self {
        let mut cache = Self::named(name);
        let _ = set(&mut cache, draft, at("10:00:00"));
        cache
    }
}

/// What the guide aggregates by the hundreds.
#[derive(Default, Conditioned)]
#[conditioned(kind = "Server")]
struct Worker {
    metadata: ObjectMeta,
    status: Option<CacheStatus>,
}

impl Worker {
    fn with_condition(name: &str, draft: Draft<'_>) -> Self {
        let mut worker = Self::default();
        worker.metadata.name = Some(name.to_owned());
        let _ = set(&mut worker, draft, at("10:00:00"));
        worker
    }
}

fn at(time: &str) -> Timestamp {
    format!("2026-02-05T{time}Z").parse().expect("a time of that day")
}

fn reported(draft: &Draft<'_>) -> String {
    format!(
        "{} is {}, {}\n{}\n",
        draft.type_, draft.status, draft.reason, draft.message
    )
}

fn first() -> String {
    // [first]
    let mut cache = Cache::named("sessions");
    let starting = Draft::new("Ready", Status::False, "Starting").message("1 of 3 members is up");

    let first = set(&mut cache, starting.clone(), at("10:00:00"));
    let again = set(&mut cache, starting.clone(), at("10:00:30"));
    let words = set(&mut cache, starting.message("2 of 3 members are up"), at("10:01:00"));
    let up = set(&mut cache, Draft::new("Ready", Status::True, "AllUp"), at("10:01:30"));
    // [end]
    let mut out = format!("first: {first:?}, again: {again:?}, words: {words:?}, up: {up:?}\n");
    for condition in cache.conditions() {
        let _ = writeln!(
            out,
            "{}",
            serde_json::to_string_pretty(condition).expect("a condition is JSON")
        );
    }
    out
}

// [declared]
/// The conditions of a Cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ConditionType)]
#[condition(reasons = CacheReason)]
enum CacheCondition {
    /// Reads and writes are served.
    #[condition(reasons(AllUp, Starting))]
    Ready,
    /// Served, but not as it should be.
    #[condition(negative, reasons(DiskFull))]
    Degraded,
}

/// Why a Cache is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reason)]
enum CacheReason {
    /// Every member answers.
    AllUp,
    /// Members are being started.
    #[reason(severity = Info, expected = "5m")]
    Starting,
    /// A disk is full; nothing is written.
    #[reason(severity = Error)]
    DiskFull,
}

fn degraded() -> Draft<'static> {
    Draft::bad(CacheCondition::Degraded, CacheReason::DiskFull).message("sessions-2 has no space left")
}
// [end]

fn declared() -> String {
    assert_eq!(
        (CacheCondition::Ready.name(), CacheReason::AllUp.name()),
        ("Ready", "AllUp")
    );
    assert_eq!(CacheReason::Starting.severity(), Some(severity::Severity::Info));
    documentation::<CacheCondition>()
}

fn summary() -> String {
    // [summary]
    let now = at("10:00:00");
    let mut cache = Cache::named("sessions");
    let _ = set(&mut cache, Draft::new("ConfigApplied", Status::True, "Applied"), now);
    let _ = set(&mut cache, degraded(), now);
    let _ = set(
        &mut cache,
        Draft::new("MembersReady", Status::False, "Starting")
            .message("sessions-0: pulling the image\nsessions-1: starting"),
        now,
    );

    let ready = Summary::new("Ready")
        .types(["MembersReady", "Degraded", "ConfigApplied", "BackupReady"])
        .negative(["Degraded"])
        .of(&cache)
        .expect("there are types to summarise");
    // [end]
    reported(&ready)
}

fn mirror() -> String {
    // [mirror]
    let disk = Cache::with_condition(
        "disk",
        Draft::new("Ready", Status::False, "Resizing").message("80 of 100 GiB"),
    );
    let without_conditions = Cache::named("new-disk");
    let volume = Mirror::new("Ready").target("VolumeReady");

    let there = volume.of(&disk);
    let not_there = volume.of(&without_conditions);
    // [end]
    let copied = there.since == Some(at("10:00:00"));
    format!(
        "{}{}transition time copied: {copied}\n",
        reported(&there),
        reported(&not_there)
    )
}

fn aggregate() -> String {
    // [aggregate]
    let waiting = || Draft::new("Ready", Status::False, "Starting").message("waiting for the primary");
    let caches = [
        Cache::with_condition("a", waiting()),
        Cache::with_condition("b", Draft::new("Ready", Status::True, "AllUp")),
        Cache::with_condition("c", waiting()),
        Cache::named("d"),
    ];
    let all = Aggregate::new("Ready")
        .target("CachesReady")
        .of(&caches)
        .expect("there are caches");
    // [end]
    reported(&all)
}

fn five_hundred() -> String {
    // [five-hundred]
    let servers: Vec<Worker> = (0..500)
        .map(|i| {
            let name = format!("server-{i:03}");
            let ready = match i % 100 {
                0..60 => Draft::new("Ready", Status::True, "Running"),
                60..80 => {
                    Draft::new("Ready", Status::False, "NodeNotReady").message("the kubelet stopped posting status")
                }
                80..90 => Draft::new("Ready", Status::False, "Drain")
                    .message("* Pod web-0: eviction refused\n* Pod web-1: waiting"),
                90..95 => Draft::new("Ready", Status::Unknown, "NoAnswer").message("no answer for 40 s"),
                n => {
                    Draft::new("Ready", Status::False, "Failed").message(format!("instance type {n} is not available"))
                }
            };
            Worker::with_condition(&name, ready)
        })
        .collect();
    let all = Aggregate::new("Ready")
        .target("ServersReady")
        .of(&servers)
        .expect("there are servers");
    // [end]
    reported(&all)
}

fn patch() -> String {
    // [patch]
    let now = at("10:05:00");
    let before = Cache::with_condition("sessions", Draft::new("Paused", Status::False, "Running"));
    let mut after = Cache::with_condition("sessions", Draft::new("Paused", Status::False, "Running"));
    let _ = set(&mut after, Draft::new("Ready", Status::True, "AllUp"), now);
    let _ = set(&mut after, Draft::new("Paused", Status::True, "Maintenance"), now);
    let ours = Patch::between(before.conditions(), after.conditions());

    // Meanwhile another writer paused it for another reason.
    let theirs = Cache::with_condition("sessions", Draft::new("Paused", Status::True, "Requested"));
    let mut latest = theirs.conditions().to_vec();
    let rejected = ours
        .apply(&mut latest, &Ownership::none(), now)
        .expect_err("both changed Paused");
    let untouched = latest == theirs.conditions();
    let change = ours
        .apply(&mut latest, &Ownership::of(["Paused"]), now)
        .expect("Paused is ours");
    // [end]
    let list: Vec<String> = latest
        .iter()
        .map(|c| format!("{}={} {}", c.type_, c.status, c.reason))
        .collect();
    format!(
        "{rejected}\nuntouched: {untouched}\nowned: {change:?}, {}\n",
        list.join(", ")
    )
}

// [store]
/// A store with conditions that have a severity.
#[derive(Default, Conditioned)]
#[conditioned(graded)]
struct Store {
    metadata: ObjectMeta,
    status: Option<StoreStatus>,
}

#[derive(Default)]
struct StoreStatus {
    conditions: Vec<GradedCondition>,
}
// [end]

fn graded() -> String {
    // [graded]
    let mut store = Store::default();
    let ready = Summary::new("Ready").types(["MembersReady", "DisksReady"]);
    let starting = || Draft::bad("MembersReady", CacheReason::Starting).message("2 of 3 are up");
    let mut story = String::new();
    for (time, disks) in [
        ("10:00:00", Draft::good("DisksReady", "AllMounted")),
        ("10:06:00", Draft::good("DisksReady", "AllMounted")),
        ("10:07:00", Draft::bad("DisksReady", CacheReason::DiskFull)),
    ] {
        let _ = set(&mut store, starting(), at(time));
        let _ = set(&mut store, disks, at(time));
        let _ = ready.set(&mut store, at(time)).expect("two types in scope");
        for condition in store.conditions() {
            let severity = condition.severity().map_or("-", severity::Severity::as_str);
            let _ = writeln!(story, "{time} {:12} {:5} {severity}", condition.type_, condition.status);
        }
    }
    // [end]
    story
}

// [server]
/// A server with conditions of generation 1.
#[derive(Default, Conditioned)]
#[conditioned(severity)]
struct Server {
    metadata: ObjectMeta,
    status: Option<ServerStatus>,
}

#[derive(Default)]
struct ServerStatus {
    conditions: Vec<severity::Condition>,
}
// [end]

fn severities() -> String {
    // [severity]
    use severity::{Draft, Severity};
    let now = at("10:00:00");
    let mut server = Server::default();
    server.metadata.name = Some("m1".to_owned());
    let _ = severity::set(&mut server, Draft::good("VPCReady"), now);
    let _ = severity::set(&mut server, Draft::good("SubnetsReady"), now);
    let _ = severity::set(
        &mut server,
        Draft::bad("InstanceReady", Severity::Info, "Provisioning", "booting"),
        now,
    );

    let steps = severity::Summary::new()
        .types(["VPCReady", "SubnetsReady", "InstanceReady"])
        .step_counter(true);
    let under_way = steps.of(&server).expect("there is something to summarise");
    let _ = severity::set(
        &mut server,
        Draft::bad("SubnetsReady", Severity::Error, "Lost", "subnet-7 is gone"),
        now,
    );
    let broken = steps
        .source_reference(true)
        .of(&server)
        .expect("there is something to summarise");
    // [end]
    let line = |d: &Draft<'_>| {
        let severity = d.severity().map_or("no severity", Severity::as_str);
        format!(
            "{} is {}, {severity}, {}: {}\n",
            d.type_(),
            d.status(),
            d.reason(),
            d.message()
        )
    };
    line(&under_way) + &line(&broken)
}

fn upgrade() -> String {
    // [upgrade]
    let ready = |name| Cache::with_condition(name, Draft::new("Ready", Status::True, "AllUp"));
    let caches = [
        (ready("a"), Phase::Steady),
        (ready("b"), Phase::Steady),
        (ready("c"), Phase::Steady),
        (Cache::named("d"), Phase::Provisioning),
    ];
    let allowance = Allowance::new(3).extra(1).provisioning(1);
    let during = Aggregate::new("Ready")
        .of_during(caches.iter().map(|(cache, phase)| (cache, *phase)), &allowance)
        .expect("there are caches");
    // [end]
    reported(&during)
}

fn readers() -> String {
    // [readers]
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3},
        "status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 2}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-c"}, "status": {"phase": "Running",
        "containerStatuses": [{"name": "app", "image": "shop/web:9", "restartCount": 5,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}});
    let alone = read_value(&deployment).expect("a deployment in shape");
    let with_its_pods = explain(alone.clone(), &[("web-c", read_value(&pod).expect("a pod in shape"))]);
    // [end]
    let line = |r: &Reading| format!("{:?}, {}: {}\n", r.health, r.reason, r.message);
    line(&alone) + &line(&with_its_pods)
}

fn events() -> String {
    // [events]
    let recorder = RecordedEvents::default();
    let about = ObjectReference::default();
    let mut cache = Cache::named("c");
    for status in [Status::False, Status::False, Status::True] {
        let change = set(&mut cache, Draft::new("Ready", status, "Members"), at("10:00:00"));
        let ready = find(cache.conditions(), "Ready").expect("it was just set");
        if let Some(notice) = Notice::of_transition(ready, Polarity::Positive, None, change) {
            recorder.record(&about, notice);
        }
    }
    // [end]
    let line = |(_, n): &(ObjectReference, Notice)| format!("{} {}: {}\n", n.kind.as_str(), n.reason, n.note);
    recorder.all().iter().map(line).collect()
}

fn finalizer() -> String {
    // [finalizer]
    let deadline = Deadline::default();
    let stuck = Done::Cleanup(Ok(Cleaned::Pending("2 pods are still there".to_owned())));
    let mut story = String::new();
    let mut before: Option<Condition> = None;
    for time in ["10:00:00", "10:00:30", "10:01:00"] {
        let moment = Moment {
            deletion_timestamp: Some(at("10:00:00")),
            held: true,
            now: at(time),
        };
        let next = deadline.next(&moment, &stuck);
        let report = deadline
            .report("Cache", &moment, &stuck, &next, before.as_ref())
            .expect("it is being deleted");
        let reasons: Vec<_> = report.notices.iter().map(|notice| notice.reason.as_str()).collect();
        let _ = writeln!(story, "{time} {}, events: {}", report.draft.message, reasons.join(", "));
        before = Some(report.draft.into_condition(1, at(time)));
    }
    // [end]
    story
}

fn tree() -> String {
    // [tree]
    let ready = Draft::new("Ready", Status::True, "AllUp").into_condition(1, at("09:57:00"));
    let starting = Draft::new("Ready", Status::False, "Starting").message("pulling the image");
    let starting = starting.into_condition(1, at("09:59:30"));
    let mut shop = Node::new("Shop", "main").line(Line::of(&starting, Polarity::Positive));
    for (name, condition) in [("a", &ready), ("b", &ready), ("c", &starting)] {
        shop = shop.child(Node::new("Cache", name).line(Line::of(condition, Polarity::Positive)));
    }
    let drawn = View::new(at("10:00:00")).render(&shop);
    // [end]
    drawn
}
