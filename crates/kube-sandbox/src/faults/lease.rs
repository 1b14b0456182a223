//! Losing a lease: another holder writes it first.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service, ServiceExt};

use super::layer::Upstream;
use super::request::RequestInfo;

/// How often a rival tries.
const ATTEMPTS: usize = 5;

/// Writes `to` into the lease the request is about, as a rival that found it expired would: a new holder, now, and one
/// more transition. A lease that is not there yet cannot be lost; then nothing happens.
pub(super) async fn take(upstream: &mut Upstream, about: &RequestInfo, to: &str) -> Result<(), BoxError> {
    if about.resource != "leases" || about.name.is_empty() {
        return Ok(());
    }
    // The write may conflict with one of the client: read the lease again and retry.
    for _ in 0..ATTEMPTS {
        let (200, mut lease) = ask(upstream, "GET", &about.path, Bytes::new()).await? else {
            return Ok(());
        };
        let now = json!(format!("{:.6}", jiff::Timestamp::now()));
        let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
        lease["spec"]["holderIdentity"] = json!(to);
        lease["spec"]["acquireTime"] = now.clone();
        lease["spec"]["renewTime"] = now;
        lease["spec"]["leaseTransitions"] = json!(transitions + 1);
        if ask(upstream, "PUT", &about.path, Bytes::from(lease.to_string()))
            .await?
            .0
            != 409
        {
            return Ok(());
        }
    }
    Ok(())
}

async fn ask(upstream: &mut Upstream, method: &str, path: &str, body: Bytes) -> Result<(u16, Value), BoxError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))?;
    let answer = upstream.ready().await?.call(request).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}
