//! The Helm chart, generated from the same objects: they are rendered with placeholders instead of values, and each
//! placeholder is replaced by a Helm expression.

use serde_json::{Value, json};

use super::{Options, admission, image, monitors, operator, permissions, web, yaml};
use crate::runtime::limits;

/// Placeholder for the release's namespace.
const NAMESPACE: &str = "__namespace__";
/// Placeholder for the image.
const IMAGE: &str = "__image__";
/// Placeholder for the list of watched namespaces.
const WATCHED: &str = "__watched__";
/// Placeholder for one watched namespace.
const EACH: &str = "__each__";
/// Placeholder for the number of operator replicas.
const REPLICAS: i32 = 7_001;
/// Placeholder for the maximum number of members.
const MAX_MEMBERS: u32 = 7_002;

/// Placeholder for the name under which the web page is opened.
const WEB_HOST: &str = "__web_host__";

/// Path and content of a file of the chart.
pub type File = (&'static str, String);

/// Every file of the chart.
pub fn files() -> Result<Vec<File>, serde_norway::Error> {
    let version = env!("CARGO_PKG_VERSION");
    let marked = Options {
        namespace: NAMESPACE.to_owned(),
        image: IMAGE.to_owned(),
        watch_namespaces: vec![WATCHED.to_owned()],
        replicas: REPLICAS,
        max_members: MAX_MEMBERS,
        web_host: Some(WEB_HOST.to_owned()),
        ..Options::default()
    };
    let template = |objects: &[Value]| yaml(objects).map(|text| expressions(&text));
    let when = |condition: &str, text: String| format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n");
    Ok(vec![
        ("Chart.yaml", CHART.replace("__version__", version)),
        ("values.yaml", values()),
        (
            "values.schema.json",
            serde_json::to_string_pretty(&schema()).unwrap_or_default() + "\n",
        ),
        ("templates/_helpers.tpl", HELPERS.to_owned()),
        ("templates/NOTES.txt", NOTES.to_owned()),
        (
            "templates/crds.yaml",
            when("$.Values.crds.install", yaml(&kept_definitions())?),
        ),
        ("templates/account.yaml", template(&[operator::account(&marked)])?),
        (
            "templates/rights.yaml",
            [
                when(
                    "not $.Values.watchNamespaces",
                    template(&permissions::cluster_wide(&marked))?,
                ),
                "{{- range $.Values.watchNamespaces }}\n---\n".to_owned(),
                template(&permissions::in_namespace(&marked, EACH))?,
                "{{- end }}\n---\n".to_owned(),
                template(&permissions::lease(&marked))?,
                "---\n".to_owned(),
                template(&permissions::node_leases(&marked))?,
            ]
            .concat(),
        ),
        (
            "templates/admission-policy.yaml",
            // Here the namespace is part of a longer string and cannot be quoted.
            when(
                "$.Values.admissionPolicy.enabled",
                yaml(&admission::objects(&marked))?.replace(NAMESPACE, "{{ $.Release.Namespace }}"),
            ),
        ),
        ("templates/service.yaml", template(&[operator::service(&marked)])?),
        ("templates/deployment.yaml", template(&[deployment(&marked)])?),
        (
            "templates/budget.yaml",
            when(
                "$.Values.podDisruptionBudget.enabled",
                template(&[operator::budget(&marked)])?,
            ),
        ),
        (
            "templates/network-policy.yaml",
            when(
                "$.Values.networkPolicy.enabled",
                template(&[operator::network_policy(&marked)])?,
            ),
        ),
        (
            "templates/web.yaml",
            when("$.Values.web.enabled", NO_NAMES.to_owned() + &template(&web(&marked))?),
        ),
        (
            "templates/service-monitor.yaml",
            when(
                "$.Values.metrics.serviceMonitor.enabled",
                template(&[monitor(monitors::of_operator(&marked), "endpoints")])?,
            ),
        ),
        (
            "templates/pod-monitor.yaml",
            when(
                "$.Values.metrics.podMonitor.enabled",
                template(&[
                    monitor(monitors::of_members(&marked), "podMetricsEndpoints"),
                    monitor(monitors::of_robins(&marked), "podMetricsEndpoints"),
                ])?,
            ),
        ),
    ])
}

/// CRDs that Helm keeps when the release is uninstalled: deleting them would delete every cluster.
fn kept_definitions() -> Vec<Value> {
    let mut all: Vec<Value> = candor_api::crds::all().iter().map(candor_api::crds::json).collect();
    for one in &mut all {
        one["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    }
    all
}

fn deployment(marked: &Options) -> Value {
    let mut object = operator::deployment(marked);
    let pod = &mut object["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!("__scheduling__");
    let container = &mut pod["containers"][0];
    container["resources"] = json!("__resources__");
    container["imagePullPolicy"] = json!("__pull__");
    for variable in container["env"].as_array_mut().into_iter().flatten() {
        if variable["name"] == "CANDOR_LOG" {
            variable["value"] = json!("__log__");
        }
    }
    object
}

fn web(marked: &Options) -> Vec<Value> {
    let mut objects = web::objects(marked);
    for object in &mut objects {
        if object["kind"] == "Deployment" {
            let pod = &mut object["spec"]["template"]["spec"];
            pod["nodeSelector"] = json!("__scheduling__");
            pod["containers"][0]["imagePullPolicy"] = json!("__pull__");
        }
    }
    objects
}

/// The page's permission to read is for all namespaces.
const NO_NAMES: &str = "{{- if $.Values.watchNamespaces }}{{ fail \"web.enabled shows all namespaces: leave watchNamespaces empty\" }}{{ end }}\n";

fn monitor(mut object: Value, endpoints: &str) -> Value {
    object["metadata"]["labels"]["__labels__"] = json!("x");
    object["spec"][endpoints][0]["interval"] = json!("__interval__");
    object
}

/// Placeholders within a line, and their replacements.
const WORDS: &[(&str, &str)] = &[
    // Within a name the quotes would become part of it.
    ("leases-__namespace__", "leases-{{ $.Release.Namespace }}"),
    (NAMESPACE, "{{ $.Release.Namespace | quote }}"),
    (IMAGE, "{{ include \"candor.image\" $ | quote }}"),
    (EACH, "{{ . | quote }}"),
    ("replicas: 7001", "replicas: {{ $.Values.replicas }}"),
    ("--max-members=7002", "--max-members={{ $.Values.maxMembers }}"),
    ("__pull__", "{{ $.Values.image.pullPolicy }}"),
    ("__log__", "{{ $.Values.log | quote }}"),
    ("__interval__", "{{ $.Values.metrics.interval }}"),
];

/// Placeholders that take a whole line, and their replacements; `@` stands for the line's indentation, `#` for
/// the number of its spaces.
const LINES: &[(&str, &str)] = &[
    (
        "- --watch-namespaces=__watched__",
        "@{{- with $.Values.watchNamespaces }}\n@- --watch-namespaces={{ join \",\" . }}\n@{{- end }}\n",
    ),
    (
        "- --host=__web_host__",
        "@{{- with $.Values.web.host }}\n@- --host={{ . }}\n@{{- end }}\n",
    ),
    (
        "resources: __resources__",
        "@resources:\n@  {{- toYaml $.Values.resources | nindent #+2 }}\n",
    ),
    (
        "nodeSelector: __scheduling__",
        "@{{- range $key := list \"nodeSelector\" \"tolerations\" \"affinity\" \"imagePullSecrets\" }}\n\
         @{{- with index $.Values $key }}\n\
         @{{ $key }}:\n\
         @  {{- toYaml . | nindent #+2 }}\n\
         @{{- end }}\n\
         @{{- end }}\n\
         @{{- with $.Values.priorityClassName }}\n\
         @priorityClassName: {{ . }}\n\
         @{{- end }}\n",
    ),
    (
        "__labels__: x",
        "@{{- with $.Values.metrics.labels }}\n@{{- toYaml . | nindent # }}\n@{{- end }}\n",
    ),
    ("matchNames:", "@{{- if $.Values.watchNamespaces }}\n@matchNames:\n"),
    (
        "- __watched__",
        "@{{- toYaml $.Values.watchNamespaces | nindent # }}\n@{{- else }}\n@any: true\n@{{- end }}\n",
    ),
];

/// Replaces every placeholder by its expression.
fn expressions(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if let Some((_, block)) = LINES.iter().find(|(mark, _)| *mark == bare) {
            let block = block.replace("#+2", &(indent + 2).to_string());
            let block = block.replace(" # ", &format!(" {indent} "));
            out.push_str(&block.replace('@', &" ".repeat(indent)));
            continue;
        }
        let message = |line: String, (mark, expression): &(&str, &str)| line.replace(mark, expression);
        out.push_str(&WORDS.iter().fold(line.to_owned(), message));
        out.push('\n');
    }
    out
}

const CHART: &str = "apiVersion: v2
name: candor
description: Valkey and Redis clusters on Kubernetes, and the truth about them.
type: application
version: __version__
appVersion: __version__
kubeVersion: '>=1.29.0-0'
keywords: [valkey, redis, operator, database]
annotations:
  license: Apache-2.0
";

const HELPERS: &str = r#"{{- define "candor.image" -}}
{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}
{{- end -}}
"#;

const NOTES: &str = "Candor's operator is being started in namespace {{ $.Release.Namespace }}.

    kubectl --namespace {{ $.Release.Namespace }} rollout status deployment candor-operator
    candor doctor --operator-namespace {{ $.Release.Namespace }}

A first cluster:

    kubectl apply -f - <<Y
    apiVersion: valkey.io/v1alpha1
    kind: ValkeyCluster
    metadata: {name: first}
    spec: {shards: 3, replicas: 1}
    Y

Manifests of the kind RedkeyCluster work as they are: docs/moving-from-redkey.md.
";

fn values() -> String {
    let image = image();
    let repository = image.split(':').next().unwrap_or_default();
    let resources = serde_norway::to_string(&operator::resources()).unwrap_or_default();
    let resources: String = resources.lines().flat_map(|line| ["  ", line, "\n"]).collect();
    VALUES
        .replace("__repository__", repository)
        .replace("__max_members__", &limits::MAX_MEMBERS.to_string())
        .replace("__resources__\n", &resources)
}

const VALUES: &str = "# The operator's image; also the metrics exporter beside every server.
image:
  repository: __repository__
  # The chart's appVersion if empty.
  tag: \"\"
  pullPolicy: IfNotPresent
imagePullSecrets: []

# Namespaces to watch for clusters; empty: all. With names the operator gets permissions in these namespaces only, and
# nothing of it is cluster-wide but the CRDs and the admission policy.
watchNamespaces: []

# The token of the operator's service account can write objects of its clusters only. Kubernetes 1.30 or newer.
admissionPolicy:
  enabled: true

# One operator acts, the others wait for its lease.
replicas: 1

# How many members one cluster may have, shards times their members. A spec that asks for more is rejected.
maxMembers: __max_members__

# The CRDs. They are kept when the release is deleted: deleting them would delete every cluster.
crds:
  install: true

# What is logged: error, warn, info, debug, trace; or a filter such as info,candor_operator=debug.
log: info

resources:
__resources__
nodeSelector: {}
tolerations: []
affinity: {}
priorityClassName: \"\"

metrics:
  # How often Prometheus scrapes.
  interval: 15s
  # More labels for the monitors, where Prometheus chooses them by label.
  labels: {}
  # Both need the Prometheus operator's CRDs.
  serviceMonitor:
    enabled: false
  podMonitor:
    enabled: false

# Nothing but the operator's metrics can be reached.
networkPolicy:
  enabled: false

# For more than one replica: a drain takes one at a time.
podDisruptionBudget:
  enabled: false

# The web page, for clusters of all namespaces. Viewers log in with a Kubernetes token and see what they may see.
web:
  enabled: false
  # The name under which it is opened through an Ingress or a Gateway; without it only through kubectl port-forward.
  host: \"\"
";

fn schema() -> Value {
    let object = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let switch = |name: &str| object(json!({name: {"type": "boolean"}}));
    let name = json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63});
    let mut schema = object(json!({
        "image": object(json!({
            "repository": {"type": "string", "minLength": 1},
            "tag": {"type": "string"},
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        })),
        "imagePullSecrets": {"type": "array", "items": {"type": "object", "required": ["name"]}},
        "watchNamespaces": {"type": "array", "uniqueItems": true, "items": name},
        "replicas": {"type": "integer", "minimum": 0},
        "maxMembers": {"type": "integer", "minimum": 1, "maximum": limits::HIGHEST_MAX_MEMBERS},
        "crds": switch("install"),
        "admissionPolicy": switch("enabled"),
        "log": {"type": "string", "minLength": 1},
        "resources": {"type": "object"},
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
        "tolerations": {"type": "array", "items": {"type": "object"}},
        "affinity": {"type": "object"},
        "priorityClassName": {"type": "string"},
        "metrics": object(json!({
            "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "serviceMonitor": switch("enabled"),
            "podMonitor": switch("enabled"),
        })),
        "networkPolicy": switch("enabled"),
        "podDisruptionBudget": switch("enabled"),
        "web": object(json!({"enabled": {"type": "boolean"}, "host": {"type": "string"}})),
        "global": {"type": "object"},
    }));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}
