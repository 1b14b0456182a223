//! A pod's own facts, as its containers and volumes may ask for them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use kube::ResourceExt;

use crate::quantity::Quantity;

/// Why a field has no value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum FieldError {
    #[error("unsupported fieldPath: {0}")]
    Path(String),
    #[error("container {0} not found")]
    Container(String),
    #[error("unsupported container resource : {0}")]
    Resource(String),
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {0}")]
    Quantity(String),
}

/// The addresses a pod has.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub pod: String,
    pub host: String,
}

/// The value of a `fieldRef`.
pub(super) fn field(pod: &Pod, addresses: &Addresses, path: &str) -> Result<String, FieldError> {
    let spec = pod.spec.as_ref();
    if let Some((map, key)) = subscript(path) {
        let values = match map {
            "metadata.labels" => pod.labels(),
            "metadata.annotations" => pod.annotations(),
            _ => return Err(FieldError::Path(path.to_owned())),
        };
        return Ok(values.get(key).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => lines(pod.labels()),
        "metadata.annotations" => lines(pod.annotations()),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
        "spec.serviceAccountName" => {
            let name = spec.and_then(|spec| spec.service_account_name.clone());
            name.unwrap_or_else(|| "default".to_owned())
        }
        "status.podIP" | "status.podIPs" => addresses.pod.clone(),
        "status.hostIP" | "status.hostIPs" => addresses.host.clone(),
        _ => return Err(FieldError::Path(path.to_owned())),
    })
}

/// `metadata.labels['key']` as map and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once("['")?;
    Some((map, rest.strip_suffix("']")?))
}

/// `key="value"` lines, as the real kubelet writes whole maps.
fn lines(map: &BTreeMap<String, String>) -> String {
    let line = |(key, value): (&String, &String)| format!("{key}={value:?}");
    map.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The value of a `resourceFieldRef`; what a container does not limit is what the node has.
pub(super) fn resource(pod: &Pod, container: &Container, of: &ResourceFieldSelector) -> Result<String, FieldError> {
    let container = match &of.container_name {
        None => container,
        Some(name) => {
            let all = pod
                .spec
                .iter()
                .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
            all.into_iter()
                .find(|known| known.name == *name)
                .ok_or_else(|| FieldError::Container(name.clone()))?
        }
    };
    let unsupported = || FieldError::Resource(of.resource.clone());
    let (list, name) = of.resource.split_once('.').ok_or_else(unsupported)?;
    let resources = container.resources.clone().unwrap_or_default();
    let limit = resources.limits.as_ref().and_then(|all| all.get(name));
    let given = match list {
        "limits" => limit,
        "requests" => resources.requests.as_ref().and_then(|all| all.get(name)).or(limit),
        _ => return Err(unsupported()),
    };
    let whole = match (list, name) {
        ("limits", "cpu") => "8",
        ("limits", "memory") => "16Gi",
        _ => "0",
    };
    let milli = thousandths(given.map_or(whole, |quantity| &quantity.0))?;
    let divisor = of.divisor.as_ref().map_or("1", |quantity| &quantity.0);
    let divisor = match thousandths(divisor)? {
        0 => 1000,
        divisor => divisor,
    };
    Ok(((milli + divisor - 1) / divisor).to_string())
}

fn thousandths(quantity: &str) -> Result<i128, FieldError> {
    let read = Quantity::parse(quantity);
    read.map(Quantity::thousandths)
        .ok_or_else(|| FieldError::Quantity(quantity.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "a-0", "namespace": "ns", "uid": "u", "labels": {"app": "a", "x/y": "q\"q"}},
            "spec": {"nodeName": "n1", "containers": [
                {"name": "c", "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}}}
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn every_field_that_kubernetes_offers_can_be_asked_for() {
        let addresses = Addresses {
            pod: "127.9.1.1".into(),
            host: "127.9.0.1".into(),
        };
        for (path, value) in [
            ("metadata.name", "a-0"),
            ("metadata.labels['x/y']", "q\"q"),
            ("metadata.labels['none']", ""),
            ("metadata.labels", "app=\"a\"\nx/y=\"q\\\"q\""),
            ("spec.serviceAccountName", "default"),
            ("status.podIP", "127.9.1.1"),
            ("status.hostIP", "127.9.0.1"),
        ] {
            assert_eq!(field(&pod(), &addresses, path).as_deref(), Ok(value), "{path}");
        }
        assert!(field(&pod(), &addresses, "spec.secret").is_err());
    }

    #[test]
    fn resources_are_divided_and_rounded_up() {
        let pod = pod();
        let container = &pod.spec.as_ref().unwrap().containers[0];
        for (name, divisor, value) in [
            ("limits.memory", "1Mi", "64"),
            ("limits.memory", "1", "67108864"),
            ("requests.memory", "1Mi", "64"),
            ("requests.cpu", "1", "1"),
            ("requests.cpu", "1m", "250"),
            ("limits.cpu", "0", "8"),
        ] {
            let asked = serde_json::from_value(json!({"resource": name, "divisor": divisor})).unwrap();
            assert_eq!(
                resource(&pod, container, &asked).as_deref(),
                Ok(value),
                "{name} / {divisor}"
            );
        }
    }
}
