//! Cluster IPs and node ports: allocated for services, kept across updates, released when the type has none.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::Ipv4Addr;
use std::sync::{MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::{clock, meta};
use crate::status::{ApiError, Cause};
use crate::validation;

/// Service addresses: 10.96.0.0/16, as kubeadm has them.
const RANGE: [u8; 2] = [10, 96];
const FIRST_NODE_PORT: i64 = 30_000;
const NODE_PORTS: i64 = 2768;

impl Api {
    /// Held from the choice of an address until the service is stored: a concurrent request would choose the same.
    pub(super) fn lock_allocations(&self, call: &Call) -> Option<MutexGuard<'_, ()>> {
        let is_service = call.kind.group.is_empty() && call.kind.plural == "services";
        is_service.then(|| self.allocations().lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives a new service its cluster IP and, where its type has them, its node ports. One that is created through its
    /// status gets nothing: see [`unallocated`].
    pub(super) fn allocate(&self, call: &Call, service: &mut Value) -> Result<(), ApiError> {
        if call.info.subresource == "status" {
            return Ok(());
        }
        if !has_address(service) || !service["spec"].is_object() {
            return Ok(());
        }
        self.give_address(call, service)?;
        self.give_ports(service, &BTreeSet::new());
        Ok(())
    }

    /// An update keeps what was given before, gets what its new type needs and loses what it does not.
    pub(super) fn reallocate(&self, call: &Call, old: &Value, service: &mut Value) -> Result<(), ApiError> {
        let is_service = call.kind.group.is_empty() && call.kind.plural == "services";
        if !is_service || !call.info.subresource.is_empty() || !service["spec"].is_object() {
            return Ok(());
        }
        if has_address(old) && has_address(service) {
            keep_where_empty(old, service, "clusterIP");
            keep_where_empty(old, service, "clusterIPs");
        }
        if has_ports(old) && has_ports(service) {
            keep_ports(old, service);
        }
        if has_health_port(old) && has_health_port(service) {
            keep_where_empty(old, service, "healthCheckNodePort");
        }
        if has_address(service) {
            if has_address(old) {
                keep_where_empty(old, service, "ipFamilies");
                keep_where_empty(old, service, "ipFamilyPolicy");
            }
            validation::service_addresses(&mut service["spec"]);
            if !has_address(old) {
                self.give_address(call, service)?;
            }
        }
        self.give_ports(service, &node_ports(old));
        drop_unused(old, service);
        Ok(())
    }

    fn give_address(&self, call: &Call, service: &mut Value) -> Result<(), ApiError> {
        let (others, _) = self.store().list("services", None);
        let asked = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        if asked.is_empty() {
            let taken: HashSet<&str> = others
                .iter()
                .filter_map(|o| o.value()["spec"]["clusterIP"].as_str())
                .collect();
            let free = loop {
                let [a, b] = clock::random::<2>();
                let address = Ipv4Addr::from([RANGE[0], RANGE[1], a, b]).to_string();
                if !taken.contains(address.as_str()) && (a, b) != (0, 0) {
                    break address;
                }
            };
            service["spec"]["clusterIP"] = json!(free);
        } else if asked != "None" && others.iter().any(|o| o.value()["spec"]["clusterIP"] == *asked) {
            return Err(taken_address(call, service, &asked));
        }
        service["spec"]["clusterIPs"] = json!([service["spec"]["clusterIP"]]);
        Ok(())
    }

    /// Node ports for the ports that have none; `own` are the service's already.
    fn give_ports(&self, service: &mut Value, own: &BTreeSet<i64>) {
        if !has_ports(service) {
            return;
        }
        let (others, _) = self.store().list("services", None);
        let mut taken: BTreeSet<i64> = others.iter().flat_map(|other| node_ports(other.value())).collect();
        taken.extend(own);
        taken.extend(node_ports(service));
        let next = |taken: &mut BTreeSet<i64>| loop {
            let candidate = FIRST_NODE_PORT + i64::from(u16::from_le_bytes(clock::random())) % NODE_PORTS;
            if taken.insert(candidate) {
                break candidate;
            }
        };
        let spec = &mut service["spec"];
        let expected = spec["type"] != json!("LoadBalancer") || spec["allocateLoadBalancerNodePorts"] != json!(false);
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            if expected && port["nodePort"].as_i64().unwrap_or(0) == 0 {
                port["nodePort"] = json!(next(&mut taken));
            }
        }
        if has_health_port(service) && service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0 {
            service["spec"]["healthCheckNodePort"] = json!(next(&mut taken));
        }
    }
}

fn kind_of(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or("ClusterIP")
}

fn has_address(service: &Value) -> bool {
    kind_of(service) != "ExternalName"
}

fn has_ports(service: &Value) -> bool {
    matches!(kind_of(service), "NodePort" | "LoadBalancer")
}

fn has_health_port(service: &Value) -> bool {
    kind_of(service) == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == json!("Local")
}

fn node_ports(service: &Value) -> BTreeSet<i64> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports
        .filter_map(|port| port["nodePort"].as_i64())
        .filter(|p| *p != 0)
        .collect()
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(_) => false,
    }
}

fn keep_where_empty(old: &Value, service: &mut Value, field: &str) {
    if is_empty(service["spec"].get(field))
        && let Some(value) = old["spec"].get(field)
    {
        service["spec"][field] = value.clone();
    }
}

/// A port that is sent without its node port keeps the one that its name had.
fn keep_ports(old: &Value, service: &mut Value) {
    let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
    let had: BTreeMap<String, i64> = old["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| Some((name(port), port["nodePort"].as_i64()?)))
        .collect();
    let used: BTreeSet<i64> = node_ports(old).intersection(&node_ports(service)).copied().collect();
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_i64().unwrap_or(0) == 0
            && let Some(kept) = had.get(&name(port)).filter(|kept| !used.contains(kept))
        {
            port["nodePort"] = json!(kept);
        }
    }
}

/// Removes what the old type had and the new one does not have, unless the client changed it as well, which is then
/// rejected.
fn drop_unused(old: &Value, service: &mut Value) {
    let same = |field: &str, service: &Value| old["spec"].get(field) == service["spec"].get(field);
    let mut gone: Vec<&str> = Vec::new();
    if has_address(old) && !has_address(service) {
        if same("clusterIP", service) && same("clusterIPs", service) {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy"].iter().filter(|f| same(f, service)));
    }
    if has_ports(old) && !has_ports(service) {
        if node_ports(old).is_superset(&node_ports(service)) {
            for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
                port.as_object_mut().map(|port| port.remove("nodePort"));
            }
        }
        gone.extend(Some("externalTrafficPolicy").filter(|f| same(f, service)));
    }
    if has_health_port(old) && !has_health_port(service) {
        gone.extend(Some("healthCheckNodePort").filter(|f| same(f, service)));
    }
    if kind_of(old) == "LoadBalancer" && kind_of(service) != "LoadBalancer" {
        let fields = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
        gone.extend(fields.iter().filter(|f| same(f, service)));
    }
    if let Some(spec) = service["spec"].as_object_mut() {
        for field in gone {
            spec.remove(field);
        }
    }
    if kind_of(service) != "LoadBalancer" && service["status"].get("loadBalancer").is_some() {
        service["status"]["loadBalancer"] = json!({});
    }
}

/// A service that is created through its status gets no address, so it must name all of them itself.
pub(super) fn unallocated(call: &Call, service: &Value) -> Option<Cause> {
    let made = call.kind.group.is_empty() && call.kind.plural == "services" && call.info.subresource == "status";
    let spec = &service["spec"];
    (made && !is_empty(spec.get("clusterIP")) && is_empty(spec.get("clusterIPs"))).then(|| Cause {
        reason: "FieldValueRequired".into(),
        message: "Required value".into(),
        field: "spec.clusterIPs".into(),
    })
}

fn taken_address(call: &Call, service: &Value, address: &str) -> ApiError {
    ApiError::invalid(
        &call.kind.group,
        &call.kind.kind,
        meta::text(service, "name"),
        &[Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: [{address:?}]: failed to allocate IP {address}: provided IP is already allocated"
            ),
            field: "spec.clusterIPs".into(),
        }],
    )
}
