//! What a viewer may see. The user of a kubeconfig sees what the watches see. A user who logged in sees what the API
//! server's own rules allow that user, asked by a `SubjectAccessReview` for each namespace, resource and verb.

use std::collections::BTreeSet;
use std::sync::Arc;

use candor_api::ValkeyNode;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, ApiResource, PostParams};

use super::serve::App;
use super::session::Session;
use super::world::Key;
use crate::commands::cluster::Kind;
use crate::commands::snapshot::Snapshot;

/// What was allowed counts this long.
const LASTS: SignedDuration = SignedDuration::from_secs(10);

/// A resource of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Clusters(Kind),
    Members,
    Pods,
    Events,
}

impl What {
    const ALL: [Self; 5] = [
        Self::Clusters(Kind::ValkeyCluster),
        Self::Clusters(Kind::RedkeyCluster),
        Self::Members,
        Self::Pods,
        Self::Events,
    ];

    /// Its API group and its plural.
    fn resource(self) -> (String, String) {
        let core = |plural: &str| (String::new(), plural.to_owned());
        let of = |resource: ApiResource| (resource.group, resource.plural);
        match self {
            Self::Clusters(kind) => of(kind.resource()),
            Self::Members => of(ApiResource::erase::<ValkeyNode>(&())),
            Self::Pods => core("pods"),
            Self::Events => core("events"),
        }
    }
}

/// What a viewer may see.
#[derive(Clone, Default)]
pub struct Sight {
    session: Option<Arc<Session>>,
    allowed: BTreeSet<(String, What)>,
    checked: Option<(Timestamp, BTreeSet<String>)>,
}

impl Sight {
    /// Of a user who logged in.
    pub fn of(session: Arc<Session>) -> Self {
        Self {
            session: Some(session),
            ..Self::default()
        }
    }

    /// Whether it is the user of the kubeconfig, who sees what the watches see.
    pub fn is_owner(&self) -> bool {
        self.session.is_none()
    }

    /// The user who logged in.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// Checks again what the viewer may see, of one cluster or of all; `None` if the login is not valid any more.
    pub async fn refresh(&mut self, app: &App, now: Timestamp, one: Option<&Key>) -> Option<()> {
        let Some(session) = self.session.clone() else {
            return Some(());
        };
        let namespaces = match one {
            Some(key) => BTreeSet::from([key.namespace.clone()]),
            None => app.world()?.namespaces(),
        };
        let is_fresh = |(at, asked): &(Timestamp, BTreeSet<String>)| {
            now.duration_since(*at) < LASTS && namespaces.is_subset(asked)
        };
        if self.checked.as_ref().is_some_and(is_fresh) {
            return Some(());
        }
        session.check(app, now).await?;
        let asked = namespaces
            .iter()
            .flat_map(|namespace| What::ALL.map(|what| (namespace.clone(), what)));
        let answers = asked.map(|(namespace, what)| {
            // One cluster is read by its name, many by a list.
            let name = one
                .filter(|_| matches!(what, What::Clusters(_)))
                .map(|key| key.name.clone());
            let session = &session;
            async move {
                let is_allowed = ask(app, session, &namespace, what, name).await;
                is_allowed.then_some((namespace, what))
            }
        });
        self.allowed = join_all(answers).await.into_iter().flatten().collect();
        self.checked = Some((now, namespaces));
        Some(())
    }

    fn may(&self, namespace: &str, what: What) -> bool {
        self.is_owner() || self.allowed.contains(&(namespace.to_owned(), what))
    }

    /// Whether the viewer may see a cluster.
    pub fn sees(&self, key: &Key) -> bool {
        self.may(&key.namespace, What::Clusters(key.kind))
    }

    /// Whether the viewer may see clusters of a namespace.
    pub fn sees_namespace(&self, namespace: &str) -> bool {
        Kind::ALL.iter().any(|kind| self.may(namespace, What::Clusters(*kind)))
    }

    /// Removes what the viewer may not see.
    pub fn limit(&self, snapshot: &mut Snapshot, namespace: &str) {
        if self.is_owner() {
            return;
        }
        let mut hidden = Vec::new();
        if !self.may(namespace, What::Members) && !snapshot.nodes.is_empty() {
            snapshot.nodes.clear();
            hidden.push("ValkeyNodes");
        }
        if !self.may(namespace, What::Pods) && !snapshot.pods.is_empty() {
            snapshot.pods.clear();
            hidden.push("pods");
        }
        if !self.may(namespace, What::Events) && !snapshot.events.is_empty() {
            snapshot.events.clear();
            hidden.push("events");
        }
        let notes = hidden
            .iter()
            .map(|what| format!("{what} are not shown: you may not list them in namespace {namespace}"));
        snapshot.notes.extend(notes);
        let servers = "keys, memory, lag and load are not shown: this page has no permission to ask the servers";
        snapshot.notes.push(servers.to_owned());
    }
}

/// Asks whether a user may read something. No answer is no permission.
async fn ask(app: &App, session: &Session, namespace: &str, what: What, name: Option<String>) -> bool {
    let (group, resource) = what.resource();
    let user = session.user.clone();
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some(if name.is_some() { "get" } else { "list" }.to_owned()),
                group: Some(group),
                resource: Some(resource),
                name,
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(app.at.client.clone());
    let answer = api.create(&PostParams::default(), &review).await;
    answer
        .ok()
        .and_then(|review| review.status)
        .is_some_and(|status| status.allowed)
}
