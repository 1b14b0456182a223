//! Service: ready when it exists, unless a load balancer has to be made for it.

use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Reading, or};

pub(super) fn service(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let type_ = or(spec.text_or_empty("type")?, "ClusterIP");
    let points = status.map("loadBalancer")?.list("ingress")?;
    if type_ != "LoadBalancer" {
        return Ok(Reading::ready("ServiceExists", format!("{type_} service")));
    }
    if let Some(rejected) = conditions.find_true("LoadBalancerPortsError") {
        return Ok(Reading::stuck("LoadBalancerPortsError", rejected.message).since(rejected.since));
    }
    let Some(point) = points.first() else {
        let maker = match spec.text("loadBalancerClass")? {
            Some(class) => format!("the controller of load balancer class {class}"),
            None => "the cloud's load balancer controller".to_owned(),
        };
        return Ok(Reading::progressing(
            "LoadBalancerPending",
            format!("waiting for an address from {maker}"),
        ));
    };
    for port in point.list("ports")? {
        if let Some(error) = port.text("error")? {
            return Ok(Reading::stuck(
                "LoadBalancerPortsError",
                format!("port {}: {error}", port.count("port")?),
            ));
        }
    }
    let address = or(point.text_or_empty("ip")?, point.text_or_empty("hostname")?);
    Ok(Reading::ready("LoadBalancerReady", format!("reachable at {address}")))
}
