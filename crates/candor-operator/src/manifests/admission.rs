//! A `ValidatingAdmissionPolicy` that restricts the operator's service account to objects of its clusters. RBAC
//! permissions (`permissions`) cannot express that: creating Deployments or Secrets anywhere is enough to become
//! cluster-admin.
//!
//! docs/security.md lists what an attacker with a stolen token can still do: read every Secret in the namespaces where
//! the operator has permissions, delete members, and run pods that meet the baseline Pod Security Standard.

use candor_api::redkey;
use serde_json::{Value, json};

use super::{NAME, Options};
use crate::objects::labels;

/// The API groups and kinds that own the objects which the operator creates.
const OWNERS: &[(&str, &str)] = &[("valkey.io", "ValkeyCluster"), ("redkey.inditex.dev", "RedkeyCluster")];

/// The resources of these kinds.
const CLUSTERS: &[&str] = &["valkeyclusters", "redkeyclusters"];

/// The resources that the policy validates: all that the operator may write, except its lease, events and status.
const RESOURCES: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &[
            "pods",
            "secrets",
            "configmaps",
            "services",
            "persistentvolumeclaims",
            "serviceaccounts",
        ],
    ),
    ("apps", "v1", &["deployments", "statefulsets"]),
    ("policy", "v1", &["poddisruptionbudgets"]),
    ("rbac.authorization.k8s.io", "v1", &["roles", "rolebindings"]),
    ("valkey.io", "*", &["valkeyclusters", "valkeynodes"]),
    ("redkey.inditex.dev", "*", &["redkeyclusters"]),
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
    let cluster = redkey::CLUSTER_LABEL;
    let component = redkey::COMPONENT_LABEL;
    json!([
        // The new and the old object, as far as they exist.
        {
            "name": "both",
            "expression": "(object == null ? [] : [dyn(object)]) + (oldObject == null ? [] : [dyn(oldObject)])",
        },
        {"name": "kind", "expression": "request.resource.resource"},
        {"name": "name", "expression": "object == null ? dyn(oldObject).metadata.name : dyn(object).metadata.name"},
        // The name of the RedkeyCluster that the new object belongs to; empty for any other object.
        {
            "name": "redkey",
            "expression": format!(
                "object == null || !has(dyn(object).metadata.labels) || !('{cluster}' in dyn(object).metadata.labels) ? '' \
                 : string(dyn(object).metadata.labels['{cluster}'])"
            ),
        },
        // Whether the new object is the Deployment of a RedkeyCluster's agent.
        {
            "name": "robin",
            "expression": format!(
                "variables.redkey != '' && variables.kind == 'deployments' && variables.name == variables.redkey + '-robin' \
                 && '{component}' in dyn(object).metadata.labels \
                 && dyn(object).metadata.labels['{component}'] == '{}'", redkey::ROBIN
            ),
        },
        // The pod specs that are new in the object. An existing pod is validated by another rule: its spec does not
        // change. The template of an adopted StatefulSet is another operator's until it is replaced.
        {
            "name": "pods",
            "expression": "object == null ? [] \
                : variables.kind in ['deployments', 'statefulsets'] ? (oldObject != null \
                && dyn(object).spec.template.spec == dyn(oldObject).spec.template.spec ? [] \
                : [dyn(object).spec.template.spec]) \
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

/// The CEL list of these texts.
fn list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("'{text}'")).collect();
    format!("[{}]", quoted.join(", "))
}

/// A CEL expression: a cluster of the operator controls the object `o`.
fn owned() -> String {
    let kinds: Vec<String> = OWNERS
        .iter()
        .map(|(group, kind)| format!("(r.apiVersion.startsWith('{group}/') && r.kind == '{kind}')"))
        .collect();
    format!(
        "has(o.metadata.ownerReferences) && o.metadata.ownerReferences.exists(r, has(r.controller) && r.controller \
         && ({}))",
        kinds.join(" || ")
    )
}

/// A CEL expression: a workload of the operator controls the pod `o`. The workloads of a `RedkeyCluster` have its name.
fn of_workload() -> String {
    let cluster = redkey::CLUSTER_LABEL;
    format!(
        "has(o.metadata.ownerReferences) && o.metadata.ownerReferences.exists(r, has(r.controller) && r.controller \
         && r.apiVersion == 'apps/v1' && (r.name.startsWith('valkey-') || (has(o.metadata.labels) \
         && '{cluster}' in o.metadata.labels && ((r.kind == 'StatefulSet' && r.name == o.metadata.labels['{cluster}']) \
         || (r.kind == 'ReplicaSet' && r.name.startsWith(o.metadata.labels['{cluster}'] + '-robin-'))))))"
    )
}

fn validations() -> Vec<Rule> {
    let mut all = of_ownership();
    all.extend(of_kinds());
    all.extend(of_redkey());
    all.extend(of_pods());
    all
}

/// Which objects the account may touch at all.
fn of_ownership() -> Vec<Rule> {
    let (owned, of_workload) = (owned(), of_workload());
    // A member's pod that lost its labels has no controller any more. The operator deletes it and never changes it.
    let released = format!(
        "object == null && o.metadata.name.startsWith('valkey-') && has(o.metadata.annotations) && \
         '{}' in o.metadata.annotations && (!has(o.metadata.ownerReferences) || \
         !o.metadata.ownerReferences.exists(r, has(r.controller) && r.controller))",
        labels::TEMPLATE_HASH
    );
    let labelled = [labels::CLUSTER, redkey::CLUSTER_LABEL].map(|label| format!("'{label}' in o.metadata.labels"));
    let labelled = format!("has(o.metadata.labels) && ({})", labelled.join(" || "));
    let clusters = list(CLUSTERS);
    let clusters_and = |more: &[&str]| list(&[CLUSTERS, more].concat());
    vec![
        // Objects of an earlier operator of RedkeyClusters may have other labels.
        rule(
            format!(
                "variables.kind in {} || variables.both.all(o, ({labelled}) || ({owned}))",
                clusters_and(&["pods"])
            ),
            "the operator's account writes only objects with the label of a cluster",
        ),
        rule(
            format!(
                "object == null || variables.kind in {} || [dyn(object)].all(o, {owned})",
                clusters_and(&["pods", "persistentvolumeclaims"])
            ),
            "the operator's account writes only objects that a cluster of it controls",
        ),
        // A retained, orphaned or restored object has the label but no controller; the operator adopts it.
        rule(
            format!(
                "oldObject == null || variables.kind in {} || [dyn(oldObject)].all(o, ({owned}) \
                 || !has(o.metadata.ownerReferences) || !o.metadata.ownerReferences.exists(r, has(r.controller) \
                 && r.controller))",
                clusters_and(&["pods"])
            ),
            "the operator's account changes and deletes no object that another one controls",
        ),
        rule(
            format!("variables.kind != 'pods' || variables.both.all(o, ({owned}) || ({of_workload}) || ({released}))"),
            "the operator's account writes only pods of its clusters",
        ),
        rule(
            format!(
                "object == null || variables.kind in {} || variables.name.startsWith('valkey-') || (variables.redkey != '' \
                 && (variables.name == variables.redkey || variables.name.startsWith(variables.redkey + '-') \
                 || variables.name.startsWith('data-' + variables.redkey + '-')))",
                clusters_and(&["valkeynodes", "secrets"])
            ),
            "the operator's account writes only objects whose name begins with valkey- or with the name of their RedkeyCluster",
        ),
        rule(
            format!(
                "!(variables.kind in {clusters} || variables.kind == 'pods') || object == null || oldObject == null \
                 || dyn(object).spec == dyn(oldObject).spec"
            ),
            "the operator's account changes the spec of no cluster and of no pod",
        ),
    ]
}

/// What Secrets and Services may be.
fn of_kinds() -> Vec<Rule> {
    vec![
        rule(
            "variables.kind != 'secrets' || variables.both.all(o, o.type == 'Opaque' \
             && (o.metadata.name.startsWith('internal-') || o.metadata.name.endsWith('-robin')))",
            "the operator's account writes only Secrets of type Opaque whose name begins with internal- or ends with -robin",
        ),
        rule(
            "variables.kind != 'services' || object == null || ((!has(dyn(object).spec.type) || dyn(object).spec.type == \
             'ClusterIP') && !has(dyn(object).spec.externalIPs))",
            "the operator's account writes only Services that are reached inside the cluster",
        ),
    ]
}

/// What the agent of a `RedkeyCluster` may get: to read pods and its own cluster. Without these rules the account could
/// give its own permissions to others.
fn of_redkey() -> Vec<Rule> {
    let readable = "(r.apiGroups == [''] && r.resources == ['pods'] && r.verbs.all(v, v in ['get', 'list', 'watch']))";
    let own = format!(
        "(r.apiGroups == ['{}'] && r.resources == ['redkeyclusters'] && has(r.resourceNames) \
         && r.resourceNames == [variables.redkey] && r.verbs == ['get'])",
        redkey::GROUP
    );
    vec![
        rule(
            "!(variables.kind in ['serviceaccounts', 'roles', 'rolebindings']) || object == null \
             || variables.name == variables.redkey + '-robin'",
            "the operator's account writes only service accounts, Roles and RoleBindings of Robin",
        ),
        rule(
            format!(
                "variables.kind != 'roles' || object == null || !has(dyn(object).rules) \
                 || dyn(object).rules.all(r, {readable} || {own})"
            ),
            "a Role of the operator's account allows to read pods and one RedkeyCluster, nothing else",
        ),
        rule(
            "variables.kind != 'rolebindings' || object == null || (dyn(object).roleRef.kind == 'Role' \
             && dyn(object).roleRef.name == variables.name && dyn(object).subjects.all(s, s.kind == 'ServiceAccount' \
             && s.namespace == dyn(object).metadata.namespace))",
            "a RoleBinding of the operator's account binds Robin's Role to a service account of its namespace",
        ),
    ]
}

/// The baseline Pod Security Standard, and no access to the API server but for Robin.
fn of_pods() -> Vec<Rule> {
    vec![
        rule(
            "variables.pods.all(p, !(has(p.hostNetwork) && p.hostNetwork) && !(has(p.hostPID) && p.hostPID) \
             && !(has(p.hostIPC) && p.hostIPC))",
            "pods of the operator's clusters have no namespace of the node",
        ),
        rule(
            "variables.pods.all(p, ((!has(p.serviceAccountName) || p.serviceAccountName in ['', 'default']) \
             && has(p.automountServiceAccountToken) && !p.automountServiceAccountToken) \
             || (variables.robin && has(p.serviceAccountName) && p.serviceAccountName == variables.name))",
            "pods of the operator's clusters have no service account and no token, except Robin, which has its own",
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
