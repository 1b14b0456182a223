//! The messages as users read them. `{}` stands for one word that differs: an address, an id, a number. `{..}` stands
//! for a message from another component, or for several words. A text that begins with `?` is optional: no test waits
//! for it.
//!
//! Every event is listed here, so that a new event does not compile without its message.

use candor_api::valkey::events::ClusterEvent;
use kube_status::Reason;

/// The messages of an event.
#[allow(clippy::too_many_lines)] // a table
pub fn of_event(event: ClusterEvent) -> &'static [&'static str] {
    use ClusterEvent as E;
    match event {
        E::ServiceCreated => &["Created headless Service", "Created client Service"],
        E::ServiceCreationFailed => &["Failed to create headless Service: exceeded quota"],
        E::ServiceUpdateFailed => &["Failed to update headless Service: exceeded quota"],
        E::ConfigMapCreated => &["Created ConfigMap with configuration"],
        E::ConfigMapCreationFailed => &["Failed to create ConfigMap: exceeded quota"],
        E::ConfigMapUpdateFailed => &["Failed to update ConfigMap: exceeded quota"],
        E::DeploymentCreated => &["Created deployment {} of {}"],
        E::DeploymentCreationFailed => &["Failed to create deployment: exceeded quota"],
        E::DeploymentUpdateFailed => &["Failed to update deployment: exceeded quota"],
        E::StatefulSetCreated => &["Created statefulset {} of {}"],
        E::StatefulSetCreationFailed => &["Failed to create statefulset: exceeded quota"],
        E::StatefulSetUpdateFailed => &["Failed to update statefulset: exceeded quota"],
        E::PersistentVolumeClaimCreated => &["Created PersistentVolumeClaim valkey-cart-0-0-data"],
        E::PersistentVolumeClaimCreationFailed => &["Failed to create PersistentVolumeClaim: exceeded quota"],
        E::PersistentVolumeClaimUpdateFailed => &["Failed to update PersistentVolumeClaim: exceeded quota"],
        E::InternalSecretsCreated => &[
            "Created Secret internal-cart-system-passwords",
            "Created Secret internal-cart-acl",
        ],
        E::InternalSecretsUpdated => &["Updated Secret internal-cart-acl"],
        E::InternalSecretsCreationFailed => &["Failed to create Secret: exceeded quota"],
        E::InternalSecretsUpdateFailed => &["Failed to update Secret: exceeded quota"],
        E::PodDisruptionBudgetCreated => &["Created PodDisruptionBudget"],
        E::PodDisruptionBudgetUpdated => &["Updated PodDisruptionBudget"],
        E::PodDisruptionBudgetDeleted => &["Deleted PodDisruptionBudget"],
        E::PodDisruptionBudgetCreationFailed => &["Failed to create PodDisruptionBudget: exceeded quota"],
        E::PodDisruptionBudgetUpdateFailed => &["Failed to update PodDisruptionBudget: exceeded quota"],
        E::ValkeyNodeCreated => &["Created ValkeyNode cart-{}"],
        E::ValkeyNodeDeleted => &["Deleted ValkeyNode cart-{}"],
        E::NodeAdding => &["Adding node {} to cluster"],
        E::NodeAdded => &["Node {} joined cluster"],
        E::NodeAddFailed => &[
            "Failed to add node: {}: CLUSTER MEET: ERR not today",
            "Failed to add node: {}: CLUSTER ADDSLOTSRANGE: ERR not today",
            "Failed to add node: {}: CLUSTER REPLICATE: ERR not today",
            "?Failed to add node: {}: no answer to CLUSTER {} in time",
        ],
        E::ClusterMeet => &["Node {} met node {}"],
        E::ClusterMeetFailed => &[
            "Node {} failed to meet node {}: {}: CLUSTER MEET: ERR not today",
            "?Node {} failed to meet node {}: {}: no answer to CLUSTER MEET in time",
        ],
        E::PrimaryCreated => &["Created primary with slots {}"],
        E::SlotAssignmentFailed => &[
            "Failed to assign slots {}: {}: CLUSTER ADDSLOTSRANGE: ERR not today",
            "?Failed to assign slots {}: {}: no answer to CLUSTER ADDSLOTSRANGE in time",
        ],
        E::ReplicaCreated => &["Created replica for primary {}"],
        E::ReplicaCreationFailed => &[
            "Failed to create replica for primary {}: {}: CLUSTER REPLICATE: ERR not today",
            "?Failed to create replica for primary {}: {}: no answer to CLUSTER REPLICATE in time",
        ],
        E::PrimaryLost => &[
            "Primary lost in shard {}: member {} does not answer",
            "?Primary lost in shard {}: member {} refuses connections",
            "?Primary lost in shard {}: member {} ended",
            "?Primary lost in shard {}: member {} is restarting (planned)",
            "?Primary lost in shard {}: member {} may still be running on node {}: its pod is gone, and the node does not \
             confirm that it has terminated",
            "?Primary lost in shard {}: its primary is not known",
            "?Primary lost in shard {}: node {} is gone",
        ],
        E::ReplicaLost => &[
            "Replica lost in shard {}: member {} does not answer",
            "?Replica lost in shard {}: member {} refuses connections",
            "?Replica lost in shard {}: member {} is not in sync",
            "?Replica lost in shard {}: member {} has no address",
        ],
        E::QuorumLost => &[
            "1 of 3 primaries answer: without a majority servers cannot elect a primary",
            "?{} of {} primaries answer: without a majority servers cannot elect a primary",
        ],
        E::SlotsRebalancing => &["Moving {} slots from shard {} to shard {}"],
        E::SlotsRebalanced => &["Moved {} slots"],
        E::SlotRebalanceFailed => &[
            "Failed to move slots: {}: CLUSTER MIGRATESLOTS: ERR not today",
            "?Failed to move slots: {..}",
        ],
        E::SlotsDraining => &["Draining {} slots from shard 2"],
        E::DrainFailed => &["Failed to drain slots: {}: CLUSTER MIGRATESLOTS: ERR not today"],
        E::FailoverInitiated => &["Failing over shard {} to member {} ({})"],
        E::FailoverCompleted => &["Member {} ({}) is the primary of shard {}"],
        E::FailoverFailed => &[
            "Failed to fail over shard {} to member {} ({}): {}: CLUSTER FAILOVER: ERR not today",
            "?Failed to fail over shard {} to member {} ({}): {}: {..}",
        ],
        E::ReplicasTakenOver => &["Shard 0 was taken over by member {} ({}) without a vote"],
        E::StaleNodeForgotten => &["Forgot stale node {}"],
        E::NodeForgetFailed => &[
            "Failed to forget node {}: {}: CLUSTER FORGET: ERR not today",
            "?Failed to forget node {}: {}: no answer to CLUSTER FORGET in time",
        ],
        E::WaitingForShards => &["0 of {} shards exist", "?{} of {} shards exist"],
        E::WaitingForReplicas => &[
            "Waiting for replicas in shard {}",
            "?Waiting for replicas to be created",
        ],
        E::ClusterReady => &["Cluster ready with {} shards and {} replicas"],
        E::PodUnschedulable => &[UNSCHEDULABLE, "?0/3 nodes are available: pod has unbound {..}"],
        E::PodNotStarting => &["pod {}: container server: Back-off pulling image \"example.com/no-such:9.1\""],
        E::ForeignNode => &["node {} at {}:6379 is in the cluster map and is none of its members"],
        E::DataLost => &["Shard 1 came back empty: slots 5461-10922, 7 keys last seen"],
        E::ConfigurationRefused => {
            &["member {}: ERR Unknown option or number of arguments for CONFIG SET - 'maxmemmory'"]
        }
        E::UsersRefused => {
            &["member {}: ERR Error in ACL SETUSER modifier '+nosuchcommand': Unknown command or category name in ACL"]
        }
        E::SpecInvalid => &[
            MISSING_SECRET,
            "spec.containers[0]: invalid type: string \"none\", expected a sequence",
        ],
        E::VolumeFailed => &[
            "member 0-0: volume claim valkey-cart-0-0-data lost its volume",
            FULL_DISK,
        ],
        E::DowngradeRefused => &[DOWNGRADE],
    }
}

const FULL_DISK: &str = "member {}: MISCONF Errors writing to the AOF file: No space left on device";

/// The events of the finalizer library, which holds a cluster until it is cleaned up. The scene may end before the second.
const OF_THE_FINALIZER: [&str; 2] = [
    "Normal Deleting: ValkeyCluster is being deleted, cleaning up resources",
    "?Normal CleanupComplete: Cleanup is complete, the finalizer is removed",
];

const UNSCHEDULABLE: &str = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. {..}";
const MISSING_SECRET: &str = "Secret cart-users is missing: it holds the password of the user app under the key app; create it in the cluster's namespace";
const MISSING_CERTIFICATE: &str = "Secret cart-tls is missing: spec.networking.tls asks for TLS; it needs ca.crt, tls.crt and tls.key; create it in the cluster's namespace";
const EMPTY_CERTIFICATE: &str = "Secret cart-tls has nothing under the key {} spec.networking.tls asks for TLS; it needs ca.crt, tls.crt and tls.key";
const DOWNGRADE: &str = "the image is 8.0 and the data is of Valkey 9.1.0, which an older server may not read: set a \
    newer image, or insist with the annotation valkey.io/allow-downgrade: \"true\"";

/// All events as lines.
pub fn events() -> impl Iterator<Item = String> {
    let ours = ClusterEvent::ALL.iter().flat_map(|event| {
        let kind = if event.severity().is_some() {
            "Warning"
        } else {
            "Normal"
        };
        of_event(*event).iter().map(move |text| {
            let (mark, text) = text.strip_prefix('?').map_or(("", *text), |text| ("?", text));
            format!("{mark}{kind} {}: {text}", event.name())
        })
    });
    ours.chain(OF_THE_FINALIZER.map(str::to_owned))
}

/// Whether an observed text matches an expected one.
pub fn fits(message: &str, text: &str) -> bool {
    let Some((before, after)) = text.split_once('{') else {
        return message == text;
    };
    let Some(rest) = message.strip_prefix(before) else {
        return false;
    };
    let (word, after) = match after.strip_prefix("..}") {
        Some(after) => (rest.len(), after),
        None => (rest.find(' ').unwrap_or(rest.len()), after.trim_start_matches('}')),
    };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.filter(|end| (1..=word).contains(end))
        .any(|end| fits(&rest[end..], after))
}

/// The condition and the reason of a line.
pub fn pair(line: &str) -> Option<(&str, &str)> {
    let (condition, rest) = line.trim_start_matches('?').split_once('=')?;
    let (_, rest) = rest.split_once(' ')?;
    Some((condition, rest.split_once(':')?.0))
}

/// The messages of conditions.
pub fn conditions() -> impl Iterator<Item = String> {
    let quoted = [
        ("Ready=False PodUnschedulable", UNSCHEDULABLE),
        ("Degraded=True PodUnschedulable", UNSCHEDULABLE),
        ("Ready=False UsersInvalid", MISSING_SECRET),
        ("UsersApplied=False UsersInvalid", MISSING_SECRET),
        ("Progressing=True Initializing", MISSING_SECRET),
        ("?Progressing=True Initializing", MISSING_CERTIFICATE),
        ("?Progressing=True Initializing", EMPTY_CERTIFICATE),
        ("Ready=False DowngradeRefused", DOWNGRADE),
        ("ConfigurationApplied=False DowngradeRefused", DOWNGRADE),
    ];
    let quoted = quoted.map(|(what, message)| format!("{what}: {message}"));
    quoted.into_iter().chain(CONDITIONS.iter().map(ToString::to_string))
}

const CONDITIONS: &[&str] = &[
    "Ready=True ClusterHealthy: Cluster is healthy",
    "Ready=False Reconciling: Cluster is Reconciling",
    "?Ready=False Reconciling: Waiting for all slots to be assigned",
    "?Ready=False Reconciling: Waiting for all nodes to report cluster_state:ok",
    "Ready=False MissingShards: Waiting for all shards to be created",
    "Ready=False MissingReplicas: Waiting for all replicas to be created",
    "Ready=False ServiceError: exceeded quota",
    "Ready=False ConfigMapError: exceeded quota",
    "Ready=False DeploymentError: exceeded quota",
    "Ready=False PodDisruptionBudgetError: exceeded quota",
    "Ready=False SecretError: exceeded quota",
    "Ready=False PersistentVolumeClaimError: exceeded quota",
    "Ready=Unknown PodListError: exceeded quota",
    "Ready=False PodNotStarting: pod {}: container server: Back-off pulling image \"example.com/no-such:9.1\"",
    "Ready=False UpdatingNodes: Updating ValkeyNodes",
    "Ready=False NodeAddFailed: Failed to add node: {}: CLUSTER MEET: ERR not today",
    "?Ready=False NodeAddFailed: Failed to add node: {}: no answer to CLUSTER {..}",
    "Ready=False RebalanceFailed: {..} ERR not today",
    "Ready=False FailoverFailed: {}: CLUSTER FAILOVER: ERR not today",
    "?Ready=False FailoverFailed: {}: {..}",
    "Ready=False NodeForgetFailed: {}: CLUSTER FORGET: ERR not today",
    "?Ready=False NodeForgetFailed: {}: no answer to CLUSTER FORGET in time",
    "Ready=False ConfigurationRefused: member {}: ERR Unknown option or number of arguments for CONFIG SET - 'maxmemmory'",
    "Ready=False SpecInvalid: spec.containers[0]: invalid type: string \"none\", expected a sequence",
    "Ready=False UsersRefused: member {}: ERR Error in ACL SETUSER modifier '+nosuchcommand': Unknown command or category name in ACL",
    "Ready=False VolumeFailed: member {}: volume claim {} lost its volume",
    "Ready=False VolumeFailed: member {}: MISCONF Errors writing to the AOF file: No space left on device",
    "Ready=False Deleting: Cluster is being deleted",
    "Progressing=True Reconciling: Creating shards",
    "Progressing=True Reconciling: Creating replicas",
    "Progressing=True Reconciling: Waiting for failover in shard {}",
    "?Progressing=True Reconciling: Waiting for failover in shards {..}",
    "?Progressing=True Reconciling: Waiting for the primary of shard {}",
    "Progressing=True Reconciling: Waiting for replicas in shard {}",
    "?Progressing=True Reconciling: Waiting for replicas in shards {..}",
    "Progressing=True Reconciling: Waiting for a majority of primaries",
    "Progressing=True Reconciling: Waiting for the pod of member {}",
    "Progressing=True Reconciling: Waiting for the trial pod: members are left as they are",
    "Progressing=True Reconciling: Waiting for a foreign node to leave the cluster map",
    "Progressing=True Reconciling: Serving the slots of lost shards again",
    "Progressing=True Reconciling: Removing nodes that are no longer wanted",
    "Progressing=True Reconciling: Forgetting stale nodes",
    "Progressing=True Reconciling: Applying changes to 1 running node",
    "Progressing=True Reconciling: Applying changes to {} running nodes",
    "Progressing=True Reconciling: Writing the objects of the cluster",
    "?Progressing=True Reconciling: Waiting for all slots to be assigned",
    "?Progressing=True Reconciling: Waiting for all nodes to report cluster_state:ok",
    "Progressing=True AddingNodes: Adding nodes to cluster",
    "Progressing=True RebalancingSlots: Rebalancing slots across primaries ({} moved)",
    "Progressing=True RebalancingSlots: Rebalancing slots for scale-in ({} moved)",
    "Progressing=True UpdatingNodes: Updating ValkeyNodes ({} of {} done)",
    "?Progressing=True UpdatingNodes: Updating ValkeyNodes ({} of {} done): member {} is restarting (planned), and {..}",
    "Progressing=True Deleting: Deleting the cluster",
    "Progressing=False ReconcileComplete: No changes needed",
    "Progressing=False Stalled: Waiting for the cause to be removed: see Ready",
    "Degraded=True NodeAddFailed: Failed to add node: {}: CLUSTER MEET: ERR not today",
    "?Degraded=True NodeAddFailed: Failed to add node: {}: {..}",
    "Degraded=True PrimaryLost: Primary lost in shard {}: member {} does not answer",
    "?Degraded=True PrimaryLost: Primary lost in shard {}: {..}",
    "Degraded=True ReplicaLost: Replica lost in shard {}: member {} does not answer",
    "?Degraded=True ReplicaLost: Replica lost in shard {}: {..}",
    "Degraded=True QuorumLost: 1 of 3 primaries answer: without a majority servers cannot elect a primary",
    "?Degraded=True QuorumLost: {} of {} primaries answer: without a majority servers cannot elect a primary",
    "Degraded=True NoSlotsAvailable: No slots available for shard 2: the cluster is paused",
    "Degraded=True RebalanceFailed: {}: CLUSTER MIGRATESLOTS: ERR not today",
    "?Degraded=True RebalanceFailed: {..}",
    "?Ready=False PodUnschedulable: 0/3 nodes are available: pod has unbound {..}",
    "?Degraded=True PodUnschedulable: 0/3 nodes are available: pod has unbound {..}",
    "Degraded=True PodNotStarting: pod {}: container server: Back-off pulling image \"example.com/no-such:9.1\"",
    "Degraded=True ForeignNode: node {} at {}:6379 is in the cluster map and is none of its members",
    "Degraded=True DataLost: Shard 1 came back empty: slots 5461-10922, 7 keys last seen",
    "ClusterFormed=True TopologyComplete: All nodes joined cluster",
    "ClusterFormed=False MissingShards: Waiting for shards",
    "ClusterFormed=False MissingReplicas: Waiting for replicas",
    "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
    "SlotsAssigned=False SlotsUnassigned: Assigning slots to nodes",
    "?SlotsAssigned=False SlotsUnassigned: Waiting for all slots to be assigned",
    "ConfigurationApplied=False ConfigurationPending: {} of {} members wait for it",
    "ConfigurationApplied=False ConfigurationRefused: member {}: ERR Unknown option or number of arguments for CONFIG SET - 'maxmemmory'",
    "ConfigurationApplied=False SpecInvalid: spec.containers[0]: invalid type: string \"none\", expected a sequence",
    "NodesReady=False NodesNotReady: * ValkeyNode {}: {..}",
    "?NodesReady=False NodesNotReady: * ValkeyNodes {}, {..}",
    "StorageReady=False VolumePending: member 0-0: volume claim valkey-cart-0-0-data is not bound yet (StorageClass standard)",
    "?StorageReady=False VolumePending: member {}: volume claim {} is not bound yet (StorageClass {})",
    "?StorageReady=False VolumePending: member {}: volume claim {} is being deleted",
    "StorageReady=False VolumeResizing: 1 volume grows",
    "StorageReady=False VolumeFailed: member {}: volume claim {} lost its volume",
    "StorageReady=False VolumeFailed: member {}: MISCONF Errors writing to the AOF file: No space left on device",
    "UsersApplied=False UsersPending: {} of {} members wait for it",
    "UsersApplied=False UsersRefused: member {}: ERR Error in ACL SETUSER modifier '+nosuchcommand': Unknown command or category name in ACL",
    "DataLost=True DataLost: Shard 1 came back empty: slots 5461-10922, {} keys last seen",
    "Paused=True PausedByUser: spec.paused is set: the operator reports status and makes no changes",
    "PrimariesSpread=False PrimariesPiledUp: Primaries are piled up: 2 in east, 0 in west; a failover of shard 0 spreads \
     them: candor failover cart -n default --spread",
    "?PrimariesSpread=False PrimariesPiledUp: Primaries are piled up: {..}: candor failover cart -n default --spread",
];
