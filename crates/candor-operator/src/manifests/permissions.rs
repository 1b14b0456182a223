//! RBAC permissions of the operator: the minimum that works, each with its reason. A test runs the operator with
//! exactly these and proves that each one is used (`tests/suite/permissions.rs`).

use serde_json::{Value, json};

use super::{NAME, Options};
use crate::observe::evidence::NODE_LEASES;

/// Verbs on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural resource name, with its subresource.
    pub resource: &'static str,
    /// The allowed verbs.
    pub verbs: &'static [&'static str],
    /// The only names it is allowed for; empty: all.
    pub names: &'static [&'static str],
    /// Why the permission is needed.
    pub purpose: &'static str,
}

const fn permission(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    purpose: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names: &[],
        purpose,
    }
}

/// What the operator needs in namespaces with clusters. `create` accompanies `patch`: server-side apply needs it for
/// objects that do not exist yet. Watched objects are never read individually, so `get` is needed only after a lost
/// response.
pub const OF_OPERATOR: &[Permission] = &[
    permission(
        "valkey.io",
        "valkeyclusters",
        &["get", "list", "watch", "patch"],
        "the clusters; patch sets and removes the finalizer, get reads again when that raced with another writer",
    ),
    permission("valkey.io", "valkeyclusters/status", &["patch"], "their status"),
    permission(
        "valkey.io",
        "valkeynodes",
        &["list", "watch", "create", "patch", "delete"],
        "the members' ValkeyNodes",
    ),
    permission(
        "valkey.io",
        "valkeynodes/status",
        &["patch"],
        "the observed state of a member",
    ),
    permission(
        "apps",
        "deployments",
        &["list", "watch", "create", "patch", "delete"],
        "members without volumes; Robin",
    ),
    permission(
        "apps",
        "statefulsets",
        &["list", "watch", "create", "patch", "delete"],
        "members with volumes; the servers of a RedkeyCluster",
    ),
    permission(
        "",
        "pods",
        &["list", "watch", "create", "patch", "delete"],
        "where members run, and how they terminate; a preflight pod proves a new template; annotated with the \
         certificate that their server is to present",
    ),
    permission(
        "",
        "persistentvolumeclaims",
        &["list", "watch", "create", "patch", "delete"],
        "members' volumes; deleted only where reclaimPolicy or deletePVC says so",
    ),
    permission(
        "",
        "services",
        &["list", "watch", "create", "patch"],
        "for clients and for members",
    ),
    permission(
        "",
        "configmaps",
        &["list", "watch", "create", "patch"],
        "the servers' configuration and scripts",
    ),
    permission(
        "",
        "secrets",
        &["get", "list", "watch", "create", "patch"],
        "users' passwords and certificates, read when a cluster names them; the operator's own passwords",
    ),
    permission(
        "",
        "events",
        &["get", "create", "patch"],
        "what happened, and how often",
    ),
    permission(
        "policy",
        "poddisruptionbudgets",
        &["list", "watch", "create", "patch", "delete"],
        "one member at a time in a drain",
    ),
];

/// What it needs there in addition for clusters of the kind `RedkeyCluster`. Their agents get separate permissions,
/// and Kubernetes lets the operator grant only what it has itself.
pub const OF_REDKEY: &[Permission] = &[
    permission(
        "redkey.inditex.dev",
        "redkeyclusters",
        &["get", "list", "watch", "patch"],
        "the clusters; patch sets and removes the finalizer; Robin may get its own",
    ),
    permission(
        "redkey.inditex.dev",
        "redkeyclusters/status",
        &["patch"],
        "their status",
    ),
    permission("", "pods", &["get"], "Robin may get pods"),
    permission(
        "",
        "serviceaccounts",
        &["list", "watch", "create", "patch"],
        "the service account of a cluster's Robin",
    ),
    permission(
        "rbac.authorization.k8s.io",
        "roles",
        &["list", "watch", "create", "patch"],
        "what Robin may do: read pods and its own cluster",
    ),
    permission(
        "rbac.authorization.k8s.io",
        "rolebindings",
        &["list", "watch", "create", "patch"],
        "binds that Role to Robin's service account",
    ),
    Permission {
        names: &[OTHER_OPERATOR],
        ..permission(
            LEASE_GROUP,
            "leases",
            &["list"],
            "whether the existing operator of RedkeyClusters still runs; only its lease",
        )
    },
];

/// The leader election lease of the existing operator of `RedkeyCluster`.
pub const OTHER_OPERATOR: &str = "db95d8a6.inditex.dev";

/// What the operator needs cluster-wide; omitted if it watches only named namespaces.
pub const EVERYWHERE: &[Permission] = &[permission(
    "",
    "nodes",
    &["list", "watch"],
    "whether the pod statuses of a node are current, and whether it is being drained",
)];

/// What the operator also reads in `kube-node-lease`, in both modes.
pub const OF_NODES: &[Permission] = &[permission(
    LEASE_GROUP,
    "leases",
    &["get"],
    "whether a node renewed its lease after a pod of it was gone",
)];

/// The API group of Leases. For the leader election lease, `create` cannot be restricted to a name; the other verbs
/// are.
const LEASE_GROUP: &str = "coordination.k8s.io";

/// What users of the CLI need in the namespace of a cluster.
pub const OF_PEOPLE: &[Permission] = &[
    permission(
        "valkey.io",
        "valkeyclusters",
        &["get", "list", "watch"],
        "status, describe, plan",
    ),
    permission(
        "valkey.io",
        "valkeyclusters",
        &["patch"],
        "pause, resume, restart, failover",
    ),
    permission("valkey.io", "valkeynodes", &["list"], "status, describe"),
    permission(
        "redkey.inditex.dev",
        "redkeyclusters",
        &["get", "list", "watch"],
        "status, describe, plan",
    ),
    permission(
        "redkey.inditex.dev",
        "redkeyclusters",
        &["patch"],
        "pause, resume, failover",
    ),
    permission("", "pods", &["list"], "status, describe"),
    permission("", "events", &["list"], "status, events, history"),
    permission("", "secrets", &["get"], "lag, keys and memory in status"),
    permission("apps", "deployments", &["list"], "describe"),
    permission("apps", "statefulsets", &["list"], "describe"),
    permission("", "persistentvolumeclaims", &["list"], "describe"),
    permission(LEASE_GROUP, "leases", &["list"], "whether an operator is alive"),
];

/// Roles and bindings: cluster-wide, or in each watched namespace; and for the lease in the operator's namespace.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.watch_namespaces.is_empty() {
        objects.extend(cluster_wide(options));
    }
    for namespace in &options.watch_namespaces {
        objects.extend(in_namespace(options, namespace));
    }
    objects.extend(lease(options));
    objects.extend(node_leases(options));
    objects
}

/// Permissions for clusters in all namespaces, and for their users: a user who may edit or view a namespace may edit or
/// view its clusters.
pub(super) fn cluster_wide(options: &Options) -> Vec<Value> {
    let of_people = |name: &str, into: &[&str], verbs: &[&str]| {
        let mut labels = super::operator::labels();
        for role in into {
            labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = json!("true");
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels},
            "rules": [
                {"apiGroups": ["valkey.io"], "resources": ["valkeyclusters", "valkeynodes"], "verbs": verbs},
                {"apiGroups": ["redkey.inditex.dev"], "resources": ["redkeyclusters"], "verbs": verbs},
            ],
        })
    };
    let see = ["get", "list", "watch"];
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": NAME, "labels": super::operator::labels()},
            "rules": rules(OF_OPERATOR.iter().chain(OF_REDKEY).chain(EVERYWHERE)),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME, "labels": super::operator::labels()},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [subject(options)],
        }),
        of_people("candor-view", &["view", "edit", "admin"], &see),
        {
            let mut edit = of_people(
                "candor-edit",
                &["edit", "admin"],
                &["create", "delete", "patch", "update"],
            );
            // `ValkeyNode` objects are created by the operator, never by users.
            edit["rules"][0]["resources"] = json!(["valkeyclusters", "valkeyclusters/scale"]);
            edit["rules"][1]["resources"] = json!(["redkeyclusters", "redkeyclusters/scale"]);
            edit
        },
    ]
}

/// Permissions for the clusters of one namespace.
pub(super) fn in_namespace(options: &Options, namespace: &str) -> Vec<Value> {
    role(options, NAME, namespace, &rules(OF_OPERATOR.iter().chain(OF_REDKEY)))
}

/// Permissions for the leader election lease.
pub(super) fn lease(options: &Options) -> Vec<Value> {
    let rules = json!([
        {"apiGroups": [LEASE_GROUP], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": [LEASE_GROUP], "resources": ["leases"], "resourceNames": [NAME], "verbs": ["get", "update"]},
    ]);
    role(options, "candor-operator-lease", &options.namespace, &rules)
}

/// Permissions for the Leases of nodes. The name contains the operator's namespace: several operators may be installed.
pub(super) fn node_leases(options: &Options) -> Vec<Value> {
    let name = format!("candor-operator-node-leases-{}", options.namespace);
    role(options, &name, NODE_LEASES, &rules(OF_NODES))
}

fn role(options: &Options, name: &str, namespace: &str, rules: &Value) -> Vec<Value> {
    let metadata = json!({"name": name, "namespace": namespace, "labels": super::operator::labels()});
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": metadata, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [subject(options)],
        }),
    ]
}

fn rules<'a>(permissions: impl IntoIterator<Item = &'a Permission>) -> Value {
    let rule = |permission: &Permission| {
        let mut rule =
            json!({"apiGroups": [permission.group], "resources": [permission.resource], "verbs": permission.verbs});
        if !permission.names.is_empty() {
            rule["resourceNames"] = json!(permission.names);
        }
        rule
    };
    permissions.into_iter().map(rule).collect()
}

fn subject(options: &Options) -> Value {
    json!({"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace})
}
