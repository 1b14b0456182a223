//! Concurrent requests about one object, sent to each server, and their outcomes compared.
//!
//! Which request comes first differs from run to run. How many of them succeed and how many conflict does not, nor does
//! the object that is stored in the end.

use serde_json::{Value, json};

use super::generate::{APPLY, MERGE, STRATEGIC, collection};
use super::normal;
use super::objects::{KINDS, Kind, object};
use super::operation::{Operation, Payload, VersionToSend};
use super::random::Random;
use super::report::Compared;
use super::server::Server;

const WRITERS: usize = 6;

/// What is sent to one server.
struct Case {
    label: String,
    before: Vec<Operation>,
    together: Vec<Operation>,
    /// Codes that stand for one another, because which of them is answered depends on the order.
    alike: &'static [(u16, u16)],
    /// Whether the stored object is compared; else it depends on the order.
    compares_object: bool,
    path: String,
}

/// Every case once on both servers. `round` keeps the objects of two rounds apart.
pub async fn round(namespace: &str, round: u64, real: &kube::Client, ours: &kube::Client) -> Vec<Compared> {
    let mut compared = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.name != "Pod") {
        for case in cases(kind, namespace, &format!("r{round}")) {
            let (a, b) = tokio::join!(outcome(&case, real), outcome(&case, ours));
            let operation = Operation::new(case.label.clone(), "GET", case.path.clone());
            compared.push(Compared::new(operation, &a, &b));
        }
    }
    compared
}

async fn outcome(case: &Case, client: &kube::Client) -> Value {
    let mut server = Server::new(client.clone());
    for operation in &case.before {
        let answer = server.send(operation).await;
        if answer.code >= 300 {
            return json!({"code": answer.code, "before": normal::normal(&answer)});
        }
    }
    let answers = futures::future::join_all(case.together.iter().map(|operation| server.answer(operation))).await;
    let mut answers: Vec<String> = answers
        .iter()
        .map(|answer| {
            let alike = case.alike.iter().find(|(code, _)| *code == answer.code);
            let code = alike.map_or(answer.code, |(_, as_code)| *as_code);
            let message = if code >= 300 {
                normal::normal(answer)["body"]["message"].clone()
            } else {
                Value::Null
            };
            format!("{code} {message}")
        })
        .collect();
    answers.sort();
    let stored = server.send(&Operation::new("stored", "GET", case.path.clone())).await;
    let stored = if case.compares_object {
        normal::normal(&stored)
    } else {
        Value::Null
    };
    json!({"code": 200, "answers": answers, "body": stored})
}

fn cases(kind: &Kind, namespace: &str, round: &str) -> Vec<Case> {
    let at = |what: &str| {
        let name = format!("{what}-{round}");
        let body = object(kind, namespace, &name, &mut Random::seeded(1));
        (format!("{}/{name}", collection(kind, namespace)), body)
    };
    let create = |body: &Value| Operation::new("create", "POST", collection(kind, namespace)).json(body.clone());
    let case = |what: &str, before: Vec<Operation>, path: String, together: Vec<Operation>| Case {
        label: format!("concurrent-{what} {}", kind.plural),
        before,
        together,
        alike: &[],
        compares_object: true,
        path,
    };
    let writers = |write: &dyn Fn(usize) -> Operation| (0..WRITERS).map(write).collect::<Vec<_>>();
    let apply = |path: &str, body: &Value, writer: usize| {
        let mut body = body.clone();
        body["metadata"]["annotations"] = json!({format!("writer-{writer}"): "x"});
        Operation::new("apply", "PATCH", path)
            .query("fieldManager", format!("writer-{writer}"))
            .body(APPLY, Payload::Json(body))
    };
    let mut cases = Vec::new();

    let (path, body) = at("apply");
    let together = writers(&|writer| apply(&path, &body, writer));
    cases.push(case("apply", Vec::new(), path, together));

    let (path, body) = at("create");
    cases.push(case("create", Vec::new(), path, writers(&|_| create(&body))));

    let (path, body) = at("put");
    let put = |_| Operation::new("put", "PUT", path.clone()).json(body.clone());
    cases.push(case("put", Vec::new(), path.clone(), writers(&put)));

    let (path, body) = at("version");
    let put = |_| {
        let changed = Payload::Changed {
            of: path.clone(),
            otherwise: body.clone(),
            sets: vec![("/metadata/annotations/note", json!("x"))],
            version: VersionToSend::Newest,
        };
        Operation::new("put", "PUT", path.clone()).body("application/json", changed)
    };
    cases.push(case("version", vec![create(&body)], path.clone(), writers(&put)));

    let (path, body) = at("patch");
    let patch = |writer: usize| {
        let patch = Payload::Json(json!({"metadata": {"annotations": {format!("writer-{writer}"): "x"}}}));
        let strategic = writer % 2 == 1 && kind.name != "Widget";
        let media = if strategic { STRATEGIC } else { MERGE };
        let path = if kind.status && writer == 0 {
            format!("{path}/status")
        } else {
            path.clone()
        };
        Operation::new("patch", "PATCH", path).body(media, patch)
    };
    cases.push(case("patch", vec![create(&body)], path.clone(), writers(&patch)));

    let (path, body) = at("delete");
    let delete = |_| Operation::new("delete", "DELETE", path.clone());
    cases.push(case("delete", vec![create(&body)], path.clone(), writers(&delete)));

    let (path, body) = at("apply-and-delete");
    let mixed = |writer: usize| match writer % 2 {
        0 => apply(&path, &body, writer),
        _ => Operation::new("delete", "DELETE", path.clone()),
    };
    cases.push(Case {
        // An apply is 200 or 201 and a deletion 200 or 404, by the order: anything else is a difference.
        alike: &[(201, 200), (404, 200)],
        compares_object: false,
        ..case("apply-and-delete", vec![create(&body)], path.clone(), writers(&mixed))
    });

    if kind.name != "Widget" {
        let (path, mut body) = at("finalizers");
        let finalizer = |writer: usize| format!("conformance.dev/writer-{writer}");
        body["metadata"]["finalizers"] = (0..WRITERS).map(finalizer).collect();
        let release = |writer: usize| {
            let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer(writer)]}});
            Operation::new("release", "PATCH", path.clone()).body(STRATEGIC, Payload::Json(patch))
        };
        let before = vec![create(&body), Operation::new("delete", "DELETE", path.clone())];
        cases.push(case("finalizers", before, path.clone(), writers(&release)));
    }
    if kind.scale {
        let (path, body) = at("scale");
        let scale = |_| {
            let patch = Payload::Json(json!({"spec": {"replicas": 5}}));
            Operation::new("scale", "PATCH", format!("{path}/scale")).body(MERGE, patch)
        };
        cases.push(case("scale", vec![create(&body)], path.clone(), writers(&scale)));
    }
    cases
}
