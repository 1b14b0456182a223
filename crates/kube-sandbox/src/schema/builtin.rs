//! The definitions of the built-in kinds, read once from k8s-openapi's own schemas and kept without their prose.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use k8s_openapi::schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::merging::{KEY_DEFAULTS, TABLE};
use super::node::{Link, ListKind, Node, Strategy, Type};
use super::zero_values;

static DEFINITIONS: LazyLock<HashMap<Arc<str>, Node>> = LazyLock::new(read_all);
static NOTHING: LazyLock<Node> = LazyLock::new(|| Node {
    preserve: true,
    ..Node::default()
});

/// A definition by its name; one that does not exist accepts everything.
pub fn definition(name: &str) -> &'static Node {
    DEFINITIONS.get(name).unwrap_or(&NOTHING)
}

/// Generates the full schemas, prose included, of the roots in `wanted` and of all they refer to.
/// They are some megabytes for all kinds: generate, answer, forget.
pub fn with_prose(expected: &dyn Fn(&str) -> bool) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, generate) in ROOTS {
        if expected(name) {
            all.extend(generate());
        }
    }
    all
}

type Generate = fn() -> Map<String, Value>;

macro_rules! roots {
    ($($kind:ty),* $(,)?) => {
        const ROOTS: &[(&str, Generate)] = &[$((stringify!($kind), || {
            let mut generator = SchemaGenerator::default();
            generator.subschema_for::<$kind>();
            generator.take_definitions(false)
        })),*];
    };
}

use k8s_openapi::api::{
    admissionregistration::v1 as admissionregistration, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling, batch::v1 as batch,
    coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery, events::v1 as events,
    networking::v1 as networking, policy::v1 as policy, rbac::v1 as rbac, scheduling::v1 as scheduling,
    storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;

roots! {
    core::Namespace, core::Node, core::Pod, core::Service, core::Endpoints, core::ConfigMap, core::Secret,
    core::ServiceAccount, core::PersistentVolume, core::PersistentVolumeClaim, core::Event, core::Binding,
    apps::Deployment, apps::ReplicaSet, apps::StatefulSet, apps::DaemonSet, apps::ControllerRevision,
    batch::Job, batch::CronJob, policy::PodDisruptionBudget, policy::Eviction, coordination::Lease,
    rbac::Role, rbac::ClusterRole, rbac::RoleBinding, rbac::ClusterRoleBinding,
    apiextensions::CustomResourceDefinition, scheduling::PriorityClass, networking::NetworkPolicy,
    storage::StorageClass, events::Event, discovery::EndpointSlice, autoscaling::Scale,
    authentication::TokenRequest, authentication::TokenReview,
    authorization::SubjectAccessReview, authorization::SelfSubjectAccessReview,
    authorization::SelfSubjectRulesReview, authorization::LocalSubjectAccessReview,
    authentication::SelfSubjectReview, admissionregistration::ValidatingAdmissionPolicy,
    admissionregistration::ValidatingAdmissionPolicyBinding,
}

fn read_all() -> HashMap<Arc<str>, Node> {
    let merging = read_table();
    let mut forms: HashMap<&str, (Value, Vec<Box<str>>)> = zero_values::lines().map(|(n, z, p)| (n, (z, p))).collect();
    let mut all: HashMap<Arc<str>, Node> = HashMap::new();
    for (_, generate) in ROOTS {
        for (name, schema) in generate() {
            if all.contains_key(name.as_str()) {
                continue;
            }
            let mut node = Node::parse(&schema);
            let name: Arc<str> = name.into();
            node.name = Some(name.clone());
            for line in merging.get(short(&name)).into_iter().flatten() {
                line.apply(&mut node);
            }
            if let Some((zero, pointers)) = forms.remove(short(&name)) {
                node.zero = Some(zero);
                node.pointers = pointers;
            }
            mend(&name, &mut node);
            all.insert(name, node);
        }
    }
    all
}

/// What the generated schemas cannot say: free-form JSON, and defaults that are list keys.
fn mend(name: &str, node: &mut Node) {
    let free = [
        "pkg.runtime.RawExtension",
        "meta.v1.FieldsV1",
        "apiextensions.v1.JSON",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrStringArray",
    ];
    if free.iter().any(|suffix| name.ends_with(suffix)) {
        node.kind = if name.ends_with("RawExtension") || name.ends_with("FieldsV1") {
            Type::Object
        } else {
            Type::Any
        };
        node.preserve = true;
        node.limits = None;
        node.atomic = true;
    }
    for (owner, field, value) in KEY_DEFAULTS {
        if short(name) == *owner {
            let own = Node {
                kind: Type::String,
                default: Some(json!(value)),
                ..Node::default()
            };
            node.properties.insert((*field).into(), Link::Own(Arc::new(own)));
        }
    }
}

/// `io.k8s.api.core.v1.Pod` is `core.v1.Pod` in the table; everything outside of `io.k8s.api` is its last word.
fn short(name: &str) -> &str {
    match name.strip_prefix("io.k8s.api.") {
        Some(rest) => rest,
        None => name.rsplit('.').next().unwrap_or(name),
    }
}

#[derive(Default)]
struct Line {
    field: Option<&'static str>,
    list: Option<ListKind>,
    strategy: Option<Strategy>,
    atomic: bool,
    granular: bool,
}

fn read_table() -> HashMap<&'static str, Vec<Line>> {
    let mut table: HashMap<&'static str, Vec<Line>> = HashMap::new();
    for text in TABLE.lines().filter(|line| !line.is_empty()) {
        let mut words = text.split(' ');
        let definition = words.next().unwrap_or_default();
        let mut line = Line::default();
        for word in words {
            let strategy = line.strategy.get_or_insert_default();
            match word.split_once('=') {
                Some(("map", keys)) => line.list = Some(ListKind::Map(keys.split(',').map(Into::into).collect())),
                Some(("patch", key)) => {
                    strategy.merge = true;
                    strategy.key = Some(key.into());
                }
                None if word == "set" => line.list = Some(ListKind::Set),
                None if word == "patch" => strategy.merge = true,
                None if word == "replace" => strategy.replace = true,
                None if word == "atomic" => line.atomic = true,
                None if word == "granular" => line.granular = true,
                None if word == "retain" => strategy.retain_keys = true,
                _ => line.field = Some(word),
            }
        }
        table.entry(definition).or_default().push(line);
    }
    table
}

impl Line {
    fn apply(&self, node: &mut Node) {
        let Some(field) = self.field else {
            node.atomic |= self.atomic;
            return;
        };
        if let Some(strategy) = self.strategy.as_ref().filter(|s| **s != Strategy::default()) {
            node.strategies.insert(field.into(), strategy.clone());
        }
        let Some(link) = node.properties.get_mut(field) else {
            return;
        };
        if self.list.is_none() && !self.atomic && !self.granular {
            return;
        }
        let mut own = match link {
            Link::Own(own) => (**own).clone(),
            Link::Named(_) if !self.granular => return,
            Link::Named(name) => granular_object_reference(name),
        };
        if let Some(list) = &self.list {
            own.list = list.clone();
        }
        own.atomic |= self.atomic;
        *link = Link::Own(Arc::new(own));
    }
}

/// `claimRef` is the one place where an ObjectReference merges field by field.
fn granular_object_reference(name: &Arc<str>) -> Node {
    let fields = [
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    let text = Link::Own(Arc::new(Node {
        kind: Type::String,
        ..Node::default()
    }));
    Node {
        kind: Type::Object,
        name: Some(name.clone()),
        properties: fields
            .iter()
            .map(|f| ((*f).into(), text.clone()))
            .collect::<BTreeMap<_, _>>(),
        ..Node::default()
    }
}
