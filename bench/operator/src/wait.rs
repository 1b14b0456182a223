//! Waiting with a deadline.

use std::time::{Duration, Instant};

use crate::Result;

/// Polls every few milliseconds until `found` returns a value; the error says what the caller waited for.
pub async fn until<T>(what: &str, within: Duration, mut found: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(value) = found().await {
            return Ok(value);
        }
        if begun.elapsed() > within {
            return Err(format!("not within {} s: {what}", within.as_secs()).into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
