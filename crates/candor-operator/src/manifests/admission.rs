//! A `ValidatingAdmissionPolicy` that restricts the operator's service account to objects of its clusters. RBAC
//! permissions (`rights`) cannot express that: creating Deployments or Secrets anywhere is enough to become
//! cluster-admin.
//!
//! docs/security.md lists what an attacker with a stolen token can still do: read every Secret in the namespaces where
//! the operator has permissions, delete members, and run pods that meet the baseline Pod Security Standard.

use serde_json::{Value, json};

use super::{NAME, Options};
use crate::objects::labels;

/// The kinds that own the objects which the operator creates.
const OWNERS: &[&str] = &["ValkeyCluster"];

/// The resources that the policy validates: all that the operator may write, except its lease, events and status.
const RESOURCES: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &["pods", "secrets", "configmaps", "services", "persistentvolumeclaims"],
    ),
    ("apps", "v1", &["deployments", "statefulsets"]),
    ("policy", "v1", &["poddisruptionbudgets"]),
    ("valkey.io", "*", &["valkeyclusters", "valkeynodes"]),
];

/// Capabilities that a container may add under the baseline Pod Security Standard.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// One validation: an expression that must be true, and the message if it is not.
struct Rule {
    expression: String,
    message: &'static str,
}

fn rule(expression: impl Into<String>, message: &'static str) -> Rule {
    Rule {
        expression: expression.into(),
        message,
    }
}

/// The policy and its binding. Their names contain the operator's namespace: they are cluster-scoped, and there may be
/// an operator in every namespace.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    let name = format!("{NAME}.{}", options.namespace);
    let account = format!("system:serviceaccount:{}:{NAME}", options.namespace);
    let rules = RESOURCES.iter().map(|(group, version, resources)| {
        json!({
            "apiGroups": [group], "apiVersions": [version], "resources": resources,
            "operations": ["CREATE", "UPDATE", "DELETE"],
        })
    });
    let validations = validations();
    let validations = validations
        .iter()
        .map(|rule| json!({"expression": rule.expression, "message": rule.message}));
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name, "labels": super::operator::labels()},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules.collect::<Vec<_>>()},
                "matchConditions": [{
                    "name": "is-the-operator",
                    "expression": format!("request.userInfo.username == '{account}'"),
                }],
                "variables": variables(),
                "validations": validations.collect::<Vec<_>>(),
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name, "labels": super::operator::labels()},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

/// The variables of the expressions. Objects are of many kinds: `dyn` disables type checking for each of them.
fn variables() -> Value {
    json!([
        // The new and the old object, as far as they exist.
        {
            "name": "both",
            "expression": "(object == null ? [] : [dyn(object)]) + (oldObject == null ? [] : [dyn(oldObject)])",
        },
        {"name": "kind", "expression": "request.resource.resource"},
        // The pod specs that the object contains. An existing pod is validated by another rule: its spec does not
        // change.
        {
            "name": "pods",
            "expression": "object == null ? [] \
                : variables.kind in ['deployments', 'statefulsets'] ? [dyn(object).spec.template.spec] \
                : variables.kind == 'pods' && oldObject == null ? [dyn(object).spec] : []",
        },
        {
            "name": "containers",
            "expression": "variables.pods.size() == 0 ? [] : variables.pods[0].containers \
                + (has(variables.pods[0].initContainers) ? variables.pods[0].initContainers : [])",
        },
        // Security contexts of pods and of containers.
        {
            "name": "contexts",
            "expression": "variables.pods.filter(p, has(p.securityContext)).map(p, p.securityContext) \
                + variables.containers.filter(c, has(c.securityContext)).map(c, c.securityContext)",
        },
    ])
}

fn validations() -> Vec<Rule> {
    let list = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        format!("[{}]", quoted.join(", "))
    };
    let cluster = labels::CLUSTER;
    let owners = list(OWNERS);
    let owned = format!(
        "has(o.metadata.ownerReferences) && o.metadata.ownerReferences.exists(r, has(r.controller) && r.controller \
         && r.apiVersion.startsWith('valkey.io/') && r.kind in {owners})"
    );
    let of_workload = "has(o.metadata.ownerReferences) && o.metadata.ownerReferences.exists(r, has(r.controller) && \
         r.controller && r.apiVersion == 'apps/v1' && r.name.startsWith('valkey-'))";
    // A member's pod that lost its labels has no controller any more. The operator deletes it and never changes it.
    let released = format!(
        "object == null && o.metadata.name.startsWith('valkey-') && has(o.metadata.annotations) && \
         '{}' in o.metadata.annotations && (!has(o.metadata.ownerReferences) || \
         !o.metadata.ownerReferences.exists(r, has(r.controller) && r.controller))",
        labels::TEMPLATE_HASH
    );
    vec![
        rule(
            format!(
                "variables.kind in ['valkeyclusters', 'pods'] || variables.both.all(o, has(o.metadata.labels) \
                 && '{cluster}' in o.metadata.labels)"
            ),
            "the operator's account writes only objects with the label valkey.io/cluster",
        ),
        rule(
            format!(
                "object == null || variables.kind in ['valkeyclusters', 'pods', 'persistentvolumeclaims'] \
                 || [dyn(object)].all(o, {owned})"
            ),
            "the operator's account writes only objects that a cluster of it controls",
        ),
        // A retained, orphaned or restored object has the label but no controller; the operator adopts it.
        rule(
            format!(
                "oldObject == null || variables.kind in ['valkeyclusters', 'pods'] || [dyn(oldObject)].all(o, ({owned}) \
                 || !has(o.metadata.ownerReferences) || !o.metadata.ownerReferences.exists(r, has(r.controller) \
                 && r.controller))"
            ),
            "the operator's account changes and deletes no object that another one controls",
        ),
        rule(
            format!("variables.kind != 'pods' || variables.both.all(o, ({owned}) || ({of_workload}) || ({released}))"),
            "the operator's account writes only pods of its clusters",
        ),
        rule(
            "object == null || variables.kind in ['valkeyclusters', 'valkeynodes', 'secrets'] \
             || object.metadata.name.startsWith('valkey-')",
            "the operator's account writes only objects whose name begins with valkey-",
        ),
        rule(
            "variables.kind != 'secrets' || variables.both.all(o, o.metadata.name.startsWith('internal-') \
             && o.type == 'Opaque')",
            "the operator's account writes only Secrets of type Opaque whose name begins with internal-",
        ),
        rule(
            "variables.kind != 'services' || object == null || ((!has(dyn(object).spec.type) || dyn(object).spec.type == \
             'ClusterIP') && !has(dyn(object).spec.externalIPs))",
            "the operator's account writes only Services that are reached inside the cluster",
        ),
        rule(
            "!(variables.kind in ['valkeyclusters', 'pods']) || object == null || oldObject == null \
             || dyn(object).spec == dyn(oldObject).spec",
            "the operator's account changes the spec of no cluster and of no pod",
        ),
        rule(
            "variables.pods.all(p, !(has(p.hostNetwork) && p.hostNetwork) && !(has(p.hostPID) && p.hostPID) \
             && !(has(p.hostIPC) && p.hostIPC))",
            "pods of the operator's clusters have no namespace of the node",
        ),
        rule(
            "variables.pods.all(p, (!has(p.serviceAccountName) || p.serviceAccountName in ['', 'default']) \
             && has(p.automountServiceAccountToken) && !p.automountServiceAccountToken)",
            "pods of the operator's clusters have no service account and no token",
        ),
        rule(
            "variables.pods.all(p, !has(p.nodeName) || p.nodeName == '')",
            "pods of the operator's clusters are placed by the scheduler",
        ),
        rule(
            "variables.pods.all(p, !has(p.volumes) || p.volumes.all(v, has(v.emptyDir) || has(v.configMap) \
             || has(v.secret) || has(v.persistentVolumeClaim)))",
            "pods of the operator's clusters mount emptyDir, ConfigMaps, Secrets and claims, nothing else",
        ),
        rule(
            "variables.contexts.all(s, !(has(s.privileged) && s.privileged) \
             && !(has(s.procMount) && s.procMount != 'Default') \
             && !(has(s.windowsOptions) && has(s.windowsOptions.hostProcess) && s.windowsOptions.hostProcess))",
            "containers of the operator's clusters are not privileged",
        ),
        rule(
            format!(
                "variables.contexts.all(s, !has(s.capabilities) || !has(s.capabilities.add) || \
                 s.capabilities.add.all(c, c in {}))",
                list(CAPABILITIES)
            ),
            "containers of the operator's clusters add no capability beyond the baseline Pod Security Standard",
        ),
        rule(
            "variables.contexts.all(s, !(has(s.seccompProfile) && s.seccompProfile.type == 'Unconfined') \
             && !(has(s.appArmorProfile) && s.appArmorProfile.type == 'Unconfined'))",
            "containers of the operator's clusters are confined by seccomp and AppArmor",
        ),
        rule(
            "variables.contexts.all(s, !has(s.seLinuxOptions) || (!has(s.seLinuxOptions.user) \
             && !has(s.seLinuxOptions.role) && (!has(s.seLinuxOptions.type) || s.seLinuxOptions.type in \
             ['container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'])))",
            "containers of the operator's clusters keep the SELinux types of containers",
        ),
        rule(
            "variables.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))",
            "containers of the operator's clusters take no port of the node",
        ),
    ]
}
