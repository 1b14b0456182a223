//! The columns of `kubectl get` for every built-in kind.

use super::Column;

/// What a real server says about the age of an object.
pub const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this \
    value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one built-in kind. A head with `+` is shown with `-o wide` only; the type follows a colon.
pub fn of(kind: &str) -> Vec<Column> {
    let heads = match kind {
        "Pod" => "Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+",
        "PodDisruptionBudget" => "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age",
        "ReplicaSet" => "Name|Desired:integer|Current:integer|Ready:integer|Age|Containers+|Images+|Selector+",
        "DaemonSet" => {
            "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|\
             Containers+|Images+|Selector+"
        }
        "Job" => "Name|Status|Completions|Duration|Age|Containers+|Images+|Selector+",
        "CronJob" => {
            "Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|Containers+|Images+|Selector+"
        }
        "Service" => "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+",
        "StatefulSet" => "Name|Ready|Age|Containers+|Images+",
        "Endpoints" => "Name|Endpoints|Age",
        "Node" => {
            "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+"
        }
        "Event" => "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+",
        "Namespace" => "Name|Status|Age",
        "Secret" => "Name|Type|Data|Age",
        "ServiceAccount" => "Name|Secrets|Age",
        "PersistentVolume" => {
            "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|\
             VolumeMode+"
        }
        "PersistentVolumeClaim" => {
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+"
        }
        "Deployment" => "Name|Ready|Up-to-date|Available|Age|Containers+|Images+|Selector+",
        "ConfigMap" => "Name|Data|Age",
        "NetworkPolicy" => "Name|Pod-Selector|Age",
        "RoleBinding" | "ClusterRoleBinding" => "Name|Role|Age|Users+|Groups+|ServiceAccounts+",
        "Lease" => "Name|Holder|Age",
        "StorageClass" => "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        "ControllerRevision" => "Name|Controller|Revision|Age",
        "PriorityClass" => "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy",
        "EndpointSlice" => "Name|AddressType|Ports|Endpoints|Age",
        _ => "Name|Created At:date",
    };
    heads.split('|').map(parse).collect()
}

fn parse(head: &str) -> Column {
    let (head, priority) = head.strip_suffix('+').map_or((head, 0), |head| (head, 1));
    let (name, kind) = head.split_once(':').unwrap_or((head, "string"));
    let mut column = column(name, kind, priority);
    match name {
        "Name" => {
            "name".clone_into(&mut column.format);
            NAME.clone_into(&mut column.description);
        }
        "Age" | "Created At" => CREATION_TIMESTAMP.clone_into(&mut column.description),
        _ => {}
    }
    column
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
    may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for \
    creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The first column of every Table.
pub fn name_column() -> Column {
    parse("Name")
}

/// A column without a path.
pub fn column(name: &str, kind: &str, priority: i32) -> Column {
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority,
        json_path: None,
    }
}
