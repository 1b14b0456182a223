//! `/healthz`, `/readyz` and `/metrics` over plain HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::runtime::http::{self, HttpLimits};
use crate::runtime::metrics::Metrics;

/// The state that the endpoints report.
pub trait Health: Send + Sync + 'static {
    /// `Ok` once every cache has been listed; otherwise the error names what is missing.
    fn ready(&self) -> Result<(), String>;

    /// Whether this operator is the leader.
    fn leads(&self) -> bool;
}

struct Told {
    health: Arc<dyn Health>,
    metrics: Arc<Metrics>,
}

/// Serves until dropped.
pub async fn serve(address: SocketAddr, health: Arc<dyn Health>, metrics: Arc<Metrics>) -> Result<(), std::io::Error> {
    let listener = TcpListener::bind(address).await?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(Arc::new(Told { health, metrics }));
    http::serve(listener, router, HttpLimits::default()).await;
    Ok(())
}

async fn readyz(State(told): State<Arc<Told>>) -> impl IntoResponse {
    match told.health.ready() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn text(State(told): State<Arc<Told>>) -> impl IntoResponse {
    told.metrics.leads(told.health.leads());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], told.metrics.text())
}
