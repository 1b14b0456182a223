//! Role-based access control: may this user do that?

use serde_json::{Value, json};

use super::api::Api;
use super::route::RequestInfo;
use super::scale::selector_text;
use super::selectors::LabelSelector;
use super::user::User;
use crate::status::{ApiError, qualified};
use crate::store::ObjectKey;

const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const ROLES: &str = "roles.rbac.authorization.k8s.io";

/// What is to be done, to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Set for paths that are no resource.
    pub path: Option<String>,
}

/// Yes or no, and why.
pub(super) struct Decision {
    pub allowed: bool,
    pub reason: String,
}

impl Question {
    pub fn on(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Self::default()
        }
    }

    pub fn of(info: &RequestInfo) -> Self {
        Self {
            verb: info.verb.clone(),
            group: info.group.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            path: (!info.is_resource).then(|| info.path.clone()),
        }
    }

    /// A list or watch of the object with one name is allowed to whoever may list that name.
    pub fn about_one(mut self, fields: Option<&str>) -> Self {
        let name = fields.and_then(|fields| fields.strip_prefix("metadata.name="));
        if let Some(name) = name.filter(|name| !name.contains([',', '!', '=']) && self.name.is_empty()) {
            name.clone_into(&mut self.name);
        }
        self
    }

    fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The error, worded as the real server's.
    fn rejected(&self, user: &User, reason: &str) -> ApiError {
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {reason}")
        };
        let (who, verb) = (&user.name, &self.verb);
        if let Some(path) = &self.path {
            let mut error = ApiError::new(
                403,
                "Forbidden",
                format!("forbidden: User {who:?} cannot {verb} path {path:?}{reason}"),
            );
            error.details = Some(json!({}));
            return error;
        }
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let mut subject = qualified(&self.group, &self.resource);
        if !self.name.is_empty() {
            subject = format!("{subject} {:?}", self.name);
        }
        let mut error = ApiError::new(
            403,
            "Forbidden",
            format!(
                "{subject} is forbidden: User {who:?} cannot {verb} resource {:?} in API group {:?} {place}{reason}",
                self.combined(),
                self.group
            ),
        );
        let mut details = json!({"kind": self.resource});
        if !self.name.is_empty() {
            details["name"] = json!(self.name);
        }
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        error.details = Some(details);
        error
    }
}

impl Api {
    /// Rejects what the user may not do.
    pub(super) fn allow(&self, user: &User, question: &Question) -> Result<(), ApiError> {
        let decision = self.decide(user, question);
        if decision.allowed {
            Ok(())
        } else {
            Err(question.rejected(user, &decision.reason))
        }
    }

    /// Yes or no, and why.
    pub(super) fn decide(&self, user: &User, question: &Question) -> Decision {
        if user.is_master() {
            return Decision {
                allowed: true,
                reason: String::new(),
            };
        }
        let mut problems = Vec::new();
        for grant in self.grants(user, &question.namespace) {
            match grant.rules {
                Ok(rules) if rules.iter().any(|r| covers(r, question)) => {
                    return Decision {
                        allowed: true,
                        reason: format!("RBAC: allowed by {}", grant.source),
                    };
                }
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        let reason = match problems.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        };
        Decision { allowed: false, reason }
    }

    /// Every rule a user has in a namespace, cluster-wide ones included.
    pub(super) fn rules_for(&self, user: &User, namespace: &str) -> Vec<Value> {
        let mut rules: Vec<Value> = self
            .grants(user, namespace)
            .into_iter()
            .filter_map(|g| g.rules.ok())
            .flatten()
            .collect();
        if user.is_master() {
            rules.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
            rules.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        }
        rules
    }

    fn grants(&self, user: &User, namespace: &str) -> Vec<Grant> {
        let mut out = Vec::new();
        let (bindings, _) = self.store().list(CLUSTER_BINDINGS, None);
        for binding in &bindings {
            if let Some(subject) = matching_subject(binding.value(), user, "") {
                let role = &binding.value()["roleRef"];
                out.push(Grant {
                    source: source("ClusterRoleBinding", binding.value(), role, subject),
                    rules: self.rules_of(role, ""),
                });
            }
        }
        if namespace.is_empty() {
            return out;
        }
        let (bindings, _) = self.store().list(BINDINGS, Some(namespace));
        for binding in &bindings {
            if let Some(subject) = matching_subject(binding.value(), user, namespace) {
                let role = &binding.value()["roleRef"];
                out.push(Grant {
                    source: source("RoleBinding", binding.value(), role, subject),
                    rules: self.rules_of(role, namespace),
                });
            }
        }
        out
    }

    fn rules_of(&self, role: &Value, namespace: &str) -> Result<Vec<Value>, String> {
        let name = role["name"].as_str().unwrap_or_default();
        let found = if role["kind"] == "ClusterRole" {
            self.store()
                .get(CLUSTER_ROLES, &ObjectKey::new("", name))
                .ok_or_else(|| format!("clusterrole.rbac.authorization.k8s.io {name:?} not found"))?
        } else {
            self.store()
                .get(ROLES, &ObjectKey::new(namespace, name))
                .ok_or_else(|| format!("role.rbac.authorization.k8s.io {name:?} not found"))?
        };
        let mut rules = found.value()["rules"].as_array().cloned().unwrap_or_default();
        for selector in found.value()["aggregationRule"]["clusterRoleSelectors"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let Ok(selector) = LabelSelector::parse(&selector_text(selector)) else {
                continue;
            };
            let (roles, _) = self.store().list(CLUSTER_ROLES, None);
            for part in roles.iter().filter(|r| selector.matches(r.value())) {
                rules.extend(part.value()["rules"].as_array().into_iter().flatten().cloned());
            }
        }
        Ok(rules)
    }
}

struct Grant {
    source: String,
    rules: Result<Vec<Value>, String>,
}

fn source(kind: &str, binding: &Value, role: &Value, subject: &Value) -> String {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let mut name = text(&binding["metadata"]["name"]);
    if let Some(namespace) = binding["metadata"]["namespace"].as_str() {
        name = format!("{name}/{namespace}");
    }
    let who = match subject["kind"].as_str() {
        Some("ServiceAccount") => format!(
            "ServiceAccount {:?}",
            format!("{}/{}", text(&subject["name"]), text(&subject["namespace"]))
        ),
        _ => format!("{} {:?}", text(&subject["kind"]), text(&subject["name"])),
    };
    format!(
        "{kind} {name:?} of {} {:?} to {who}",
        text(&role["kind"]),
        text(&role["name"])
    )
}

fn matching_subject<'a>(binding: &'a Value, user: &User, namespace: &str) -> Option<&'a Value> {
    binding["subjects"].as_array()?.iter().find(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => user.name == name,
            Some("Group") => user.groups.iter().any(|g| g == name),
            Some("ServiceAccount") => {
                let within = subject["namespace"]
                    .as_str()
                    .filter(|n| !n.is_empty())
                    .unwrap_or(namespace);
                user.name
                    .strip_prefix("system:serviceaccount:")
                    .and_then(|rest| rest.split_once(':'))
                    .is_some_and(|(ns, account)| ns == within && account == name)
            }
            _ => false,
        }
    })
}

fn covers(rule: &Value, question: &Question) -> bool {
    let has = |field: &str, expected: &str| {
        rule[field]
            .as_array()
            .is_some_and(|list| list.iter().any(|v| v == "*" || v == expected))
    };
    if !has("verbs", &question.verb) {
        return false;
    }
    if let Some(path) = &question.path {
        return rule["nonResourceURLs"].as_array().is_some_and(|urls| {
            urls.iter()
                .filter_map(Value::as_str)
                .any(|url| match url.strip_suffix('*') {
                    Some(prefix) => path.starts_with(prefix),
                    None => path == url,
                })
        });
    }
    let any_of_subresource = format!("*/{}", question.subresource);
    let resource = has("resources", &question.combined())
        || (!question.subresource.is_empty() && has("resources", &any_of_subresource));
    let names = rule["resourceNames"].as_array().filter(|n| !n.is_empty());
    let named = names.is_none_or(|names| names.iter().any(|n| n == question.name.as_str()));
    has("apiGroups", &question.group) && resource && named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_what_it_names_and_nothing_else() {
        let rule = json!({
            "verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "*/scale", "pods/log"],
        });
        let named = json!({"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]});
        let table = [
            (&rule, "get", "", "pods", "", "", true),
            (&rule, "delete", "", "pods", "", "", false),
            (&rule, "get", "", "pods", "log", "", true),
            (&rule, "get", "", "pods", "exec", "", false),
            (&rule, "get", "apps", "deployments", "scale", "", true),
            (&rule, "get", "batch", "pods", "", "", false),
            (&named, "get", "", "secrets", "", "mine", true),
            (&named, "get", "", "secrets", "", "yours", false),
            (&named, "list", "", "secrets", "", "", false),
        ];
        for (rule, verb, group, resource, subresource, name, expected) in table {
            let mut question = Question::on(verb, group, resource, "ns", name);
            question.subresource = subresource.into();
            assert_eq!(covers(rule, &question), expected, "{question:?}");
        }
    }
}
