//! Which change triggers which controller.

use std::sync::Arc;

use kube::{Client, Resource};
use tokio::task::JoinSet;

use super::accounts::Accounts;
use super::deployment::Deployments;
use super::disruption::Budgets;
use super::endpoints::ServiceEndpoints;
use super::event_ttl::{Births, EventTtl};
use super::garbage::{Collector, Known};
use super::namespaces::Namespaces;
use super::nodes::{Evictions, Nodes};
use super::plane::{Caches, Plane, Settings};
use super::replicaset::ReplicaSets;
use super::runtime::{Controller, Listener, ObjectKey, Queue, Recorder, Resources, follow_all, work};
use super::statefulset::StatefulSets;
use super::volumes::{self, Claims, Volumes};

type Keys = Arc<Queue<ObjectKey>>;

/// Queues the changed object itself.
fn itself<K: Resource + 'static>(queue: &Keys) -> Listener<K> {
    let queue = queue.clone();
    Box::new(move |old, new| {
        if let Some(object) = new.or(old) {
            queue.add(ObjectKey::of(&**object));
        }
    })
}

/// Queues the objects that a function names, for the object before and after the change.
fn concerned<K: 'static>(plane: &Plane, queue: &Keys, ask: fn(&Plane, &K, &Queue<ObjectKey>)) -> Listener<K> {
    let (plane, queue) = (plane.clone(), queue.clone());
    Box::new(move |old, new| {
        for object in [old, new].into_iter().flatten() {
            ask(&plane, object, &queue);
        }
    })
}

fn spawn<C: Controller>(tasks: &mut JoinSet<()>, caches: &Arc<Caches>, controller: C, queue: &Keys) {
    let (caches, queue) = (caches.clone(), queue.clone());
    tasks.spawn(async move {
        caches.synced().await;
        work(Arc::new(controller), queue).await;
    });
}

/// Runs everything until dropped.
pub async fn run_all(client: Client, settings: Settings) {
    let (recorder, events) = Recorder::new(client.clone(), "kube-controller-manager");
    let plane = Plane {
        client: client.clone(),
        caches: Arc::default(),
        resources: Arc::default(),
        recorder,
        settings: Arc::new(settings),
    };
    let caches = &plane.caches;
    let queue = Keys::default;
    let (deployments, replica_sets, stateful_sets) = (queue(), queue(), queue());
    let (budgets, services) = (queue(), queue());
    let (claims, disks, accounts) = (queue(), queue(), queue());
    let (nodes, evictions, old_events) = (queue(), queue(), queue());

    caches.deployments.listen(vec![
        itself(&deployments),
        concerned(&plane, &budgets, Budgets::concerned_by_scale),
    ]);
    caches.budgets.listen(vec![itself(&budgets)]);
    caches.services.listen(vec![itself(&services)]);
    caches.endpoints.listen(vec![itself(&services)]);
    caches
        .slices
        .listen(vec![concerned(&plane, &services, ServiceEndpoints::concerned_by_slice)]);
    caches.replica_sets.listen(vec![
        itself(&replica_sets),
        concerned(&plane, &deployments, Deployments::concerned),
    ]);
    caches.stateful_sets.listen(vec![
        itself(&stateful_sets),
        concerned(&plane, &budgets, Budgets::concerned_by_scale),
    ]);
    caches.pods.listen(vec![
        concerned(&plane, &replica_sets, ReplicaSets::concerned),
        concerned(&plane, &deployments, Deployments::concerned_by_pod),
        concerned(&plane, &stateful_sets, StatefulSets::concerned),
        concerned(&plane, &budgets, Budgets::concerned),
        concerned(&plane, &services, ServiceEndpoints::concerned),
        concerned(&plane, &claims, Claims::concerned),
        concerned(&plane, &evictions, Evictions::concerned),
    ]);

    let (namespaces, garbage) = (queue(), queue());
    caches.namespaces.listen(vec![itself(&namespaces), itself(&accounts)]);
    caches
        .service_accounts
        .listen(vec![concerned(&plane, &accounts, Accounts::concerned)]);
    let recorder = plane.recorder.named("node-controller");
    caches.nodes.listen(vec![
        itself(&nodes),
        Box::new(move |old, new| Nodes::record_registration(&recorder, old.is_none(), new.map(AsRef::as_ref))),
        concerned(&plane, &evictions, Evictions::concerned_by_node),
    ]);
    caches.leases.listen(vec![concerned(&plane, &nodes, Nodes::concerned)]);
    caches
        .claims
        .listen(vec![itself(&claims), concerned(&plane, &disks, Volumes::concerned)]);
    caches.volumes.listen(vec![
        itself(&disks),
        concerned(&plane, &claims, Claims::concerned_by_volume),
    ]);
    caches
        .classes
        .listen(vec![concerned(&plane, &claims, Claims::concerned_by_class)]);
    let graph = Known::new(&garbage, {
        let (namespaces, known) = (namespaces.clone(), caches.namespaces.clone());
        move |name: &str| {
            let leaving = known
                .find("", name)
                .is_some_and(|space| space.metadata.deletion_timestamp.is_some());
            if leaving {
                namespaces.add(ObjectKey::new("", name));
            }
        }
    });

    let mut tasks = JoinSet::new();
    tasks.spawn(events);
    tasks.spawn(volumes::seed(client.clone()));
    spawn(&mut tasks, caches, Deployments::new(&plane), &deployments);
    spawn(&mut tasks, caches, ReplicaSets::new(&plane), &replica_sets);
    spawn(&mut tasks, caches, StatefulSets::new(&plane), &stateful_sets);
    spawn(&mut tasks, caches, Budgets::new(&plane), &budgets);
    spawn(&mut tasks, caches, ServiceEndpoints::new(&plane), &services);
    spawn(&mut tasks, caches, Claims::new(&plane), &claims);
    spawn(&mut tasks, caches, Volumes::new(&plane), &disks);
    spawn(&mut tasks, caches, Accounts::new(&plane), &accounts);
    spawn(&mut tasks, caches, Nodes::new(&plane), &nodes);
    spawn(&mut tasks, caches, Evictions::new(&plane), &evictions);
    spawn(&mut tasks, caches, EventTtl::new(&plane), &old_events);
    spawn(&mut tasks, caches, Namespaces::new(&plane), &namespaces);
    spawn(&mut tasks, caches, Collector::new(&plane, &graph), &garbage);

    let births = Births::new(&old_events);
    let ready = |known: &Resources| {
        let known = known.all();
        caches.settle_absent(|group, plural| {
            known
                .iter()
                .any(|served| served.resource.group == group && served.resource.plural == plural)
        });
    };
    follow_all(
        client,
        plane.resources.clone(),
        |served| {
            let resource = &served.resource;
            let mut sinks = Vec::from_iter(caches.sink(&resource.group, &resource.plural));
            sinks.extend(graph.sink(served));
            if resource.plural == "events" && resource.group.is_empty() {
                sinks.push(births.clone());
            }
            sinks
        },
        ready,
        |group, plural| graph.forget(group, plural),
    )
    .await;
}
