//! Tests that the objects of an installation are consistent; tests on a sandbox show that it works (`tests/`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{NAME, Options, chart, permissions, render};
use crate::kinds::redkey::objects::{Inputs, RobinCredentials, build};
use crate::objects::violations;

fn everything() -> Options {
    Options {
        replicas: 2,
        budget: true,
        network_policy: true,
        service_monitor: true,
        pod_monitor: true,
        ..Options::default()
    }
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn named(object: &Value) -> String {
    format!("{} {}", object["kind"], object["metadata"]["name"])
}

#[test]
fn the_operator_meets_the_restricted_standard() {
    let objects = render(&Options::default());
    let deployment = of_kind(&objects, "Deployment")[0];
    let template = &deployment["spec"]["template"];
    assert_eq!(violations(template), Vec::<String>::new());
    assert_eq!(
        template["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
        json!(true)
    );
    let namespace = of_kind(&objects, "Namespace")[0];
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
}

#[test]
fn what_is_chosen_is_there_and_what_is_not_is_not() {
    let optional = [
        ("PodDisruptionBudget", 1),
        ("NetworkPolicy", 1),
        ("ServiceMonitor", 1),
        ("PodMonitor", 2),
    ];
    let (plain, all) = (render(&Options::default()), render(&everything()));
    for (kind, count) in optional {
        assert_eq!(of_kind(&plain, kind).len(), 0, "{kind}");
        assert_eq!(of_kind(&all, kind).len(), count, "{kind}");
    }
    let without = Options {
        definitions: false,
        ..Options::default()
    };
    assert!(of_kind(&render(&without), "CustomResourceDefinition").is_empty());
    assert_eq!(of_kind(&plain, "CustomResourceDefinition").len(), 3);
}

#[test]
fn the_web_page_reads_and_asks_and_can_do_nothing_else() {
    let options = Options {
        web: true,
        web_host: Some("candor.example".to_owned()),
        ..Options::default()
    };
    let objects = render(&options);
    let web: Vec<&Value> = objects
        .iter()
        .filter(|object| object["metadata"]["name"] == super::WEB)
        .collect();
    assert_eq!(web.len(), 5);
    let deployment = web.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let template = &deployment["spec"]["template"];
    assert_eq!(violations(template), Vec::<String>::new());
    let args = template["spec"]["containers"][0]["args"].as_array().unwrap();
    assert!(
        args.contains(&json!("--login")) && args.contains(&json!("--host=candor.example")),
        "{args:?}"
    );
    let role = web.iter().find(|object| object["kind"] == "ClusterRole").unwrap();
    for rule in role["rules"].as_array().unwrap() {
        let is_review = rule["resources"].to_string().contains("reviews");
        let verbs = if is_review {
            json!(["create"])
        } else {
            json!(["list", "watch"])
        };
        assert_eq!(rule["verbs"], verbs, "{rule}");
        assert!(!rule["resources"].to_string().contains("secrets"), "{rule}");
    }
}

#[test]
fn with_named_namespaces_nothing_is_cluster_wide() {
    let options = Options {
        watch_namespaces: vec!["shop".to_owned(), "bank".to_owned()],
        ..everything()
    };
    let objects = render(&options);
    assert!(of_kind(&objects, "ClusterRole").is_empty() && of_kind(&objects, "ClusterRoleBinding").is_empty());
    let places: BTreeSet<&str> = of_kind(&objects, "Role")
        .into_iter()
        .filter_map(|role| role["metadata"]["namespace"].as_str())
        .collect();
    assert_eq!(places, ["bank", "candor", "kube-node-lease", "shop"].into());
    let text = json!(of_kind(&objects, "Role")).to_string();
    assert!(!text.contains("\"nodes\""), "machines are nobody's namespace");
    let args = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(args.to_string().contains("--watch-namespaces=shop,bank"), "{args}");
}

#[test]
fn bindings_selectors_and_ports_lead_to_what_is_there() {
    for options in [Options::default(), everything()] {
        let objects = render(&options);
        let roles: Vec<String> = objects
            .iter()
            .filter(|object| object["rules"].is_array())
            .map(named)
            .collect();
        for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
            let role = format!("{} {}", binding["roleRef"]["kind"], binding["roleRef"]["name"]);
            assert!(roles.contains(&role), "{role}");
            let account = &binding["subjects"][0];
            assert_eq!(
                (&account["name"], &account["namespace"]),
                (&json!(NAME), &json!(options.namespace))
            );
        }
        let template = &of_kind(&objects, "Deployment")[0]["spec"]["template"];
        let labels = template["metadata"]["labels"].as_object().unwrap();
        let selectors = ["Deployment", "PodDisruptionBudget"].map(|kind| (kind, "/spec/selector/matchLabels"));
        let others = [
            ("Service", "/spec/selector"),
            ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ];
        for (kind, path) in selectors.into_iter().chain(others) {
            for object in of_kind(&objects, kind) {
                let desired = object.pointer(path).and_then(Value::as_object).unwrap();
                assert!(
                    desired.iter().all(|(key, value)| labels.get(key) == Some(value)),
                    "{kind}: {desired:?}"
                );
            }
        }
    }
}

fn every_permission() -> impl Iterator<Item = &'static permissions::Permission> {
    [
        permissions::OF_OPERATOR,
        permissions::OF_REDKEY,
        permissions::EVERYWHERE,
        permissions::OF_NODES,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn the_admission_policy_judges_all_that_the_account_may_write_and_is_bound() {
    for namespace in ["candor", "ops"] {
        let options = Options {
            namespace: namespace.to_owned(),
            ..Options::default()
        };
        let objects = render(&options);
        let policy = of_kind(&objects, "ValidatingAdmissionPolicy")[0];
        let binding = of_kind(&objects, "ValidatingAdmissionPolicyBinding")[0];
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        let account = format!("'system:serviceaccount:{namespace}:{NAME}'");
        let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(condition.ends_with(&account), "{condition}");
        let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap();
        let judged = |permission: &permissions::Permission| {
            rules.iter().any(|rule| {
                let resources = rule["resources"].as_array().unwrap();
                rule["apiGroups"] == json!([permission.group]) && resources.contains(&json!(permission.resource))
            })
        };
        let writes = |permission: &&permissions::Permission| {
            permission
                .verbs
                .iter()
                .any(|verb| !["get", "list", "watch"].contains(verb))
        };
        // Events may be about any object, and a status does not change what runs.
        let harmless = |permission: &&permissions::Permission| {
            permission.resource == "events" || permission.resource.ends_with("/status")
        };
        for permission in permissions::OF_OPERATOR
            .iter()
            .chain(permissions::OF_REDKEY)
            .filter(writes)
            .filter(|permission| !harmless(permission))
        {
            assert!(judged(permission), "the policy does not judge {permission:?}");
        }
    }
    let without = Options {
        admission_policy: false,
        ..Options::default()
    };
    assert!(!json!(render(&without)).to_string().contains("AdmissionPolicy"));
}

/// Kubernetes rejects a Role that grants more than its writer has.
#[test]
fn the_operator_has_every_permission_that_it_grants_to_robin() {
    let cluster = candor_api::RedkeyCluster::new("cache", candor_api::RedkeyClusterSpec::default());
    let config =
        crate::kinds::redkey::config::merge("", crate::kinds::redkey::config::Storage::Ephemeral, None).unwrap();
    let random = ring::rand::SystemRandom::new();
    let credentials = RobinCredentials::generate("cache", &random).unwrap();
    let inputs = Inputs {
        kept: None,
        cluster: &cluster,
        config: &config,
        credentials: &credentials,
        robin_image: "candor",
        replicas: 3,
        status: candor_api::redkey::status::ClusterStatus::Initializing,
    };
    let role = build(&inputs).unwrap().robin.role;
    let rules = role.rules.unwrap();
    assert!(!rules.is_empty());
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    let has = |permission: &&permissions::Permission| {
                        permission.group == group
                            && permission.resource == resource
                            && permission.verbs.contains(&verb.as_str())
                    };
                    assert!(
                        every_permission().any(|permission| has(&permission)),
                        "{verb} {resource}.{group}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_right_is_given_twice_or_by_a_star() {
    let mut observation = BTreeSet::new();
    for permission in every_permission() {
        for verb in permission.verbs {
            assert!(!format!("{}{}{verb}", permission.group, permission.resource).contains('*'));
            assert!(
                observation.insert((permission.group, permission.resource, permission.names, *verb)),
                "{permission:?} {verb}"
            );
        }
    }
}

#[test]
fn the_page_about_installing_names_every_right() {
    let page = include_str!("../../../../docs/install.md");
    for permission in every_permission() {
        let (plural, sub) = permission.resource.split_once('/').unwrap_or((permission.resource, ""));
        let group = if permission.group.is_empty() {
            String::new()
        } else {
            format!(".{}", permission.group)
        };
        let slash = if sub.is_empty() { "" } else { "/" };
        let verbs = permission.verbs.join(", ");
        let place = if permissions::OF_NODES.contains(permission) {
            ", in `kube-node-lease`".to_owned()
        } else if let [name] = permission.names {
            format!(" `{name}` alone")
        } else {
            String::new()
        };
        let row = format!(
            "| `{plural}{group}{slash}{sub}`{place} | {verbs} | {} |",
            permission.purpose
        );
        assert!(page.contains(&row), "docs/install.md lacks: {row}");
    }
}

/// The values that a template of the chart uses: `$.Values.a.b`.
fn asked(text: &str) -> BTreeSet<String> {
    text.split("$.Values.")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
            rest[..end.unwrap_or(rest.len())].trim_end_matches('.').to_owned()
        })
        .collect()
}

#[test]
fn every_value_of_the_chart_is_used_declared_and_checked() {
    let files = chart::files().unwrap();
    let file = |name: &str| &files.iter().find(|(path, _)| *path == name).unwrap().1;
    let values: Value = serde_norway::from_str(file("values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(file("values.schema.json")).unwrap();
    let templates: String = files
        .iter()
        .filter(|(path, _)| path.starts_with("templates/"))
        .map(|(_, text)| text.as_str())
        .collect();
    let mut used = asked(&templates);
    // These are looked up by name in a loop.
    used.extend(["nodeSelector", "tolerations", "affinity", "imagePullSecrets"].map(str::to_owned));
    for path in &used {
        let pointer = format!("/{}", path.replace('.', "/"));
        assert!(values.pointer(&pointer).is_some(), "values.yaml has no {path}");
        let checked = format!("/properties/{}", path.replace('.', "/properties/"));
        assert!(schema.pointer(&checked).is_some(), "values.schema.json has no {path}");
    }
    for (key, value) in values.as_object().unwrap() {
        let known = used
            .iter()
            .any(|path| path == key || path.starts_with(&format!("{key}.")));
        assert!(known, "nobody asks for {key}");
        let below = value.as_object().into_iter().flatten();
        for (inner, _) in below.filter(|_| !used.contains(key)) {
            let path = format!("{key}.{inner}");
            let known = used
                .iter()
                .any(|one| *one == path || one.starts_with(&format!("{path}.")));
            assert!(known, "nobody asks for {path}");
        }
    }
    // Names of Prometheus also begin with two underscores.
    let ours = templates.replace("__meta_", "");
    assert!(!ours.contains("__"), "a mark was left: {ours}");
}
