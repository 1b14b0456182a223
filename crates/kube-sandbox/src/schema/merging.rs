//! How the lists and maps of the built-in kinds merge: one line per field that differs from
//! "lists are atomic, maps merge key by key".
//!
//! A line reads `Definition field words`, where the words are
//! `map=keys` or `set` (server-side apply), `patch=key` or `patch` (strategic merge by key, or by value),
//! `retain` and `replace` (strategic merge), `atomic` (an object owned as a whole).
//! A line without a field is about the definition itself. The names leave out `io.k8s.api.`.

/// The table, as text: it is read once, on first use of a built-in schema.
pub(super) const TABLE: &str = "
apps.v1.DaemonSetStatus conditions map=type patch=type
apps.v1.DeploymentSpec strategy retain
apps.v1.DeploymentStatus conditions map=type patch=type
apps.v1.ReplicaSetStatus conditions map=type patch=type
apps.v1.StatefulSetStatus conditions map=type patch=type
autoscaling.v1.CrossVersionObjectReference atomic
batch.v1.JobStatus conditions patch=type
batch.v1.PodFailurePolicyOnExitCodesRequirement values set
batch.v1.UncountedTerminatedPods failed set
batch.v1.UncountedTerminatedPods succeeded set
core.v1.ConfigMapKeySelector atomic
core.v1.Container env map=name patch=name
core.v1.Container ports map=containerPort,protocol patch=containerPort
core.v1.Container volumeDevices map=devicePath patch=devicePath
core.v1.Container volumeMounts map=mountPath patch=mountPath
core.v1.ContainerRestartRuleOnExitCodes values set
core.v1.ContainerStatus allocatedResourcesStatus map=name patch=name
core.v1.ContainerStatus volumeMounts map=mountPath patch=mountPath
core.v1.EndpointAddress atomic
core.v1.EndpointPort atomic
core.v1.EphemeralContainer env map=name patch=name
core.v1.EphemeralContainer ports map=containerPort,protocol patch=containerPort
core.v1.EphemeralContainer volumeDevices map=devicePath patch=devicePath
core.v1.EphemeralContainer volumeMounts map=mountPath patch=mountPath
core.v1.FileKeySelector atomic
core.v1.LocalObjectReference atomic
core.v1.NamespaceStatus conditions map=type patch=type
core.v1.NodeSelector atomic
core.v1.NodeSelectorTerm atomic
core.v1.NodeSpec podCIDRs set patch
core.v1.NodeStatus addresses map=type patch=type
core.v1.NodeStatus conditions map=type patch=type
core.v1.ObjectFieldSelector atomic
core.v1.ObjectReference atomic
core.v1.PersistentVolumeClaimStatus conditions map=type patch=type
core.v1.PersistentVolumeSpec claimRef granular
core.v1.PodSpec containers map=name patch=name
core.v1.PodSpec ephemeralContainers map=name patch=name
core.v1.PodSpec hostAliases map=ip patch=ip
core.v1.PodSpec imagePullSecrets map=name patch=name
core.v1.PodSpec initContainers map=name patch=name
core.v1.PodSpec nodeSelector atomic
core.v1.PodSpec resourceClaims map=name patch=name retain
core.v1.PodSpec schedulingGates map=name patch=name
core.v1.PodSpec topologySpreadConstraints map=topologyKey,whenUnsatisfiable patch=topologyKey
core.v1.PodSpec volumes map=name patch=name retain
core.v1.PodStatus conditions map=type patch=type
core.v1.PodStatus hostIPs patch=ip
core.v1.PodStatus podIPs map=ip patch=ip
core.v1.PodStatus resourceClaimStatuses map=name patch=name retain
core.v1.ResourceFieldSelector atomic
core.v1.ResourceRequirements claims map=name
core.v1.ResourceStatus resources map=resourceID
core.v1.ScopeSelector atomic
core.v1.SecretKeySelector atomic
core.v1.SecretReference atomic
core.v1.ServiceAccount secrets map=name patch=name
core.v1.ServiceSpec ports map=port,protocol patch=port
core.v1.ServiceSpec selector atomic
core.v1.ServiceStatus conditions map=type patch=type
core.v1.TopologySelectorTerm atomic
core.v1.TypedLocalObjectReference atomic
discovery.v1.Endpoint addresses set
discovery.v1.EndpointPort atomic
policy.v1.PodDisruptionBudgetSpec selector replace
policy.v1.PodDisruptionBudgetStatus conditions map=type patch=type
rbac.v1.RoleRef atomic
rbac.v1.Subject atomic
CustomResourceDefinitionStatus conditions map=type
JSONSchemaProps x-kubernetes-validations map=rule patch=rule
LabelSelector atomic
ObjectMeta finalizers set patch
ObjectMeta ownerReferences map=uid patch=uid
OwnerReference atomic
";

/// Defaults that server-side apply needs to know before it merges, because they are part of a list's key.
pub(super) const KEY_DEFAULTS: &[(&str, &str, &str)] = &[
    ("core.v1.ContainerPort", "protocol", "TCP"),
    ("core.v1.ServicePort", "protocol", "TCP"),
];
