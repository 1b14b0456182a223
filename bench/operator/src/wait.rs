//! Waiting with a deadline.

use std::time::{Duration, Instant};

use crate::Result;

/// Asks every few milliseconds until there is an answer; the error says what was waited for.
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
