//! Pieces of rows: labels, selectors, ports, addresses as `kubectl get` shows them.

use serde_json::{Value, json};

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn or(value: &Value, otherwise: &str) -> Value {
    json!(value.as_str().filter(|text| !text.is_empty()).unwrap_or(otherwise))
}

pub(super) fn or_not_available(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

pub(super) fn containers(template: &Value, field: &str) -> Value {
    let names = list(&template["spec"]["containers"])
        .iter()
        .filter_map(|c| c[field].as_str());
    json!(names.collect::<Vec<_>>().join(","))
}

pub(super) fn labels(map: &Value) -> Value {
    let pairs = map.as_object().into_iter().flatten();
    let shown: Vec<String> = pairs
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    json!(if shown.is_empty() {
        "<none>".to_owned()
    } else {
        shown.join(",")
    })
}

/// A label selector as text: `a=b,c in (d,e),!f`.
pub(super) fn selector(selector: &Value) -> Value {
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in list(&selector["matchExpressions"]) {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = list(&expression["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.sort();
    json!(if parts.is_empty() {
        "<none>".to_owned()
    } else {
        parts.join(",")
    })
}

pub(super) fn access_modes(modes: &Value) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        Some("ReadWriteOncePod") => "RWOP",
        _ => "",
    };
    list(modes).iter().map(short).collect::<Vec<_>>().join(",")
}

pub(super) fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let mut addresses: Vec<String> = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match spec["type"].as_str() {
        Some("ExternalName") => return text(&spec["externalName"]),
        Some("LoadBalancer") => {
            for ingress in list(&service["status"]["loadBalancer"]["ingress"]) {
                let ip = text(&ingress["ip"]);
                addresses.push(if ip.is_empty() { text(&ingress["hostname"]) } else { ip });
            }
        }
        _ => {}
    }
    addresses.extend(list(&spec["externalIPs"]).iter().map(text));
    match (addresses.is_empty(), spec["type"].as_str()) {
        (false, _) => addresses.join(","),
        (true, Some("LoadBalancer")) => "<pending>".to_owned(),
        _ => "<none>".to_owned(),
    }
}

pub(super) fn ports(ports: &Value) -> String {
    let shown: Vec<String> = list(ports)
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or_default();
            match number(&port["nodePort"]) {
                0 => format!("{}/{protocol}", number(&port["port"])),
                node => format!("{}:{node}/{protocol}", number(&port["port"])),
            }
        })
        .collect();
    if shown.is_empty() {
        "<none>".to_owned()
    } else {
        shown.join(",")
    }
}

/// The first three, and how many more there are.
pub(super) fn first_three(all: &[String]) -> String {
    match all.len() {
        0..=3 => all.join(","),
        more => format!("{} + {} more...", all[..3].join(","), more - 3),
    }
}

pub(super) fn endpoints(object: &Value) -> String {
    let subsets = list(&object["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || list(&subset["addresses"]).iter().filter_map(|a| a["ip"].as_str());
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", number(&port["port"]))
                } else {
                    format!("{ip}:{}", number(&port["port"]))
                }
            }));
        }
    }
    first_three(&all)
}

pub(super) fn slice_ports(object: &Value) -> String {
    let shown = |port: &Value| match (&port["port"], &port["name"]) {
        (Value::Number(port), _) => port.to_string(),
        (_, Value::String(name)) => name.clone(),
        _ => "*".to_owned(),
    };
    let all: Vec<String> = list(&object["ports"]).iter().map(shown).collect();
    if all.is_empty() {
        "<unset>".to_owned()
    } else {
        first_three(&all)
    }
}

pub(super) fn slice_endpoints(object: &Value) -> String {
    let addresses = list(&object["endpoints"]).iter().flat_map(|e| list(&e["addresses"]));
    let all: Vec<String> = addresses.filter_map(|a| a.as_str().map(str::to_owned)).collect();
    if all.is_empty() {
        "<unset>".to_owned()
    } else {
        first_three(&all)
    }
}
