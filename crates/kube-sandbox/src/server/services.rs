//! Addresses and ports that the server gives to services.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::{clock, meta};
use crate::status::{ApiError, Cause};

/// Service addresses: 10.96.0.0/16, as kubeadm has them.
const RANGE: [u8; 2] = [10, 96];

impl Api {
    /// Gives a service its cluster address and, where its type has them, its node ports.
    pub(super) fn allocate(&self, call: &Call, service: &mut Value) -> Result<(), ApiError> {
        let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
        if kind == "ExternalName" || !service["spec"].is_object() {
            return Ok(());
        }
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
        if kind == "NodePort" || kind == "LoadBalancer" {
            let mut taken: HashSet<i64> = others
                .iter()
                .filter_map(|o| o.value()["spec"]["ports"].as_array())
                .flatten()
                .filter_map(|p| p["nodePort"].as_i64())
                .collect();
            for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
                if port["nodePort"].as_i64().unwrap_or(0) == 0 {
                    let free = loop {
                        let candidate = 30_000 + i64::from(u16::from_le_bytes(clock::random())) % 2768;
                        if taken.insert(candidate) {
                            break candidate;
                        }
                    };
                    port["nodePort"] = json!(free);
                }
            }
        }
        Ok(())
    }
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
