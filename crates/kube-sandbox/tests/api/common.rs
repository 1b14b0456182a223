//! What these tests share.

use kube_sandbox::Sandbox;
use serde_json::Value;

/// The API server alone: nothing writes but the test.
pub async fn bare() -> Sandbox {
    Sandbox::builder()
        .controllers(false)
        .kubelet(false)
        .start()
        .await
        .unwrap()
}

pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
