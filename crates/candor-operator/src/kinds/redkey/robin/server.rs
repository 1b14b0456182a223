//! The router: every path and status code of the contract, errors as `{"error": …}`, a size limit for bodies, a
//! deadline for requests.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::api::{
    self, ErrorBody, Move, NewReplicas, Nodes, PROTOCOL, PROTOCOL_HEADER, Replicas, RobinStatus, Status, message, path,
};
use super::{Change, Rejection, RobinState, Work};

/// Maximum size of a request body.
pub const BODY_LIMIT: usize = 4096;
/// Deadline of a request.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// Deadline for a client to send the head of a request, and then its body.
pub const CLIENT_DEADLINE: Duration = Duration::from_secs(5);
/// Maximum number of concurrent connections. Further connections wait.
const CONNECTIONS: usize = 128;
/// Number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// The router with all paths.
pub fn router<S: RobinState>(state: Arc<S>) -> Router {
    Router::new()
        .route(path::HEALTH, get(|| async { status(message::OK) }))
        .route(path::METRICS, get(metrics::<S>))
        .route(path::STATUS, get(get_status::<S>).put(put_status::<S>))
        .route(path::REPLICAS, get(get_replicas::<S>).put(put_replicas::<S>))
        .route(path::OPERATION, get(get_operation::<S>))
        .route(path::CHECK, get(check::<S>))
        .route(path::NODES, get(nodes::<S>))
        .route(path::FIX, put(fix::<S>))
        .route(path::RECREATE, put(recreate::<S>))
        .route(path::MOVE, put(move_slots::<S>))
        .route(&format!("{}/{{node}}", path::RESET), put(reset::<S>))
        .fallback(|| async { error(StatusCode::NOT_FOUND, "no such path") })
        .method_not_allowed_fallback(|| async { error(StatusCode::METHOD_NOT_ALLOWED, "no such method here") })
        .with_state(state)
        .layer(map_response(with_protocol))
}

/// Serves plain HTTP until it is dropped. All connections end with it.
pub async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    accept(listener, CONNECTIONS, move |stream| {
        serve_connection(stream, router.clone())
    })
    .await
}

/// Accepts connections and serves a limited number of them at once, until it is dropped.
pub(super) async fn accept<F>(listener: TcpListener, limit: usize, serve: impl Fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limit => match accepted {
                Ok((stream, _)) => {
                    // Without it, a small message may wait for the acknowledgement of the one before.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream));
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                Err(error) => {
                    // The process is probably out of file descriptors. Accepting again immediately would cause a busy
                    // loop.
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// Serves one connection, plain or with TLS.
pub async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, router: Router) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(CLIENT_DEADLINE);
    let service = TowerToHyperService::new(router);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended");
    }
}

pub(super) async fn with_protocol(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(PROTOCOL_HEADER, HeaderValue::from(PROTOCOL));
    response
}

async fn metrics<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    match within(async { Ok(state.metrics().await) }).await {
        Ok(text) => ([(header::CONTENT_TYPE, super::metrics::CONTENT_TYPE)], text).into_response(),
        Err(rejected) => rejected,
    }
}

async fn get_status<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    status(state.status())
}

async fn put_status<S: RobinState>(State(state): State<Arc<S>>, request: Request) -> Response {
    let act = async {
        let body: Status<String> = admitted(&*state, request).await?;
        let known = RobinStatus::ALL.iter().copied().find(|one| one.name() == body.status);
        let desired = known.ok_or_else(|| {
            let all: Vec<&str> = RobinStatus::ALL.iter().map(|one| one.name()).collect();
            bad(format!("unknown status: write one of {}", all.join(", ")))
        })?;
        within(state.set_status(desired)).await?;
        Ok(status(state.status()))
    };
    answer(act).await
}

async fn get_replicas<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    Json(state.replicas()).into_response()
}

async fn put_replicas<S: RobinState>(State(state): State<Arc<S>>, request: Request) -> Response {
    let act = async {
        let body: NewReplicas = admitted(&*state, request).await?;
        let desired = Replicas {
            primaries: body.primaries,
            replicas_per_primary: body
                .replicas_per_primary
                .unwrap_or(state.replicas().replicas_per_primary),
        };
        let code = match within(state.set_replicas(desired)).await? {
            Change::Unchanged => StatusCode::OK,
            Change::Started => StatusCode::CREATED,
        };
        Ok((code, Json(state.replicas())).into_response())
    };
    answer(act).await
}

async fn get_operation<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    status(state.operation())
}

async fn check<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    answer(async { Ok(Json(within(state.check()).await?).into_response()) }).await
}

async fn nodes<S: RobinState>(State(state): State<Arc<S>>) -> Response {
    Json(Nodes { nodes: state.nodes() }).into_response()
}

async fn fix<S: RobinState>(State(state): State<Arc<S>>, request: Request) -> Response {
    let act = async {
        admitted_without_body(&*state, request).await?;
        Ok(started(within(state.fix()).await?))
    };
    answer(act).await
}

async fn recreate<S: RobinState>(State(state): State<Arc<S>>, request: Request) -> Response {
    let act = async {
        admitted_without_body(&*state, request).await?;
        Ok(started(within(state.recreate()).await?))
    };
    answer(act).await
}

async fn move_slots<S: RobinState>(State(state): State<Arc<S>>, request: Request) -> Response {
    let act = async {
        let body: Move = admitted(&*state, request).await?;
        if body.from.is_empty() || body.to.is_empty() {
            return Err(bad(
                "from and to name servers: write an index such as 3, or the name of a pod",
            ));
        }
        if body.from == body.to {
            return Err(bad("from and to are the same server: name two"));
        }
        if body.slots > SLOTS {
            return Err(bad(format!("slots is at most {SLOTS}; 0 moves all of them")));
        }
        Ok(started(within(state.move_slots(body)).await?))
    };
    answer(act).await
}

async fn reset<S: RobinState>(State(state): State<Arc<S>>, Path(node): Path<String>, request: Request) -> Response {
    let act = async {
        admitted_without_body(&*state, request).await?;
        Ok(match within(state.reset(node)).await? {
            Work::Completed => status(message::COMPLETED),
            Work::Started | Work::Running => (StatusCode::ACCEPTED, status(message::IN_PROGRESS)).into_response(),
        })
    };
    answer(act).await
}

/// The response for work that was started, is running, or is finished.
fn started(work: Work) -> Response {
    match work {
        Work::Started => (StatusCode::CREATED, status(message::IN_PROGRESS)).into_response(),
        Work::Running => (StatusCode::ACCEPTED, status(message::IN_PROGRESS)).into_response(),
        Work::Completed => status(message::COMPLETED),
    }
}

/// The body of a request that may change something. The token is checked before any byte of the body is read.
async fn admitted<S: RobinState, T: DeserializeOwned>(state: &S, request: Request) -> Result<T, Response> {
    let body = admitted_bytes(state, request).await?;
    serde_json::from_slice(&body).map_err(|error| bad(format!("the body is not the JSON that is expected: {error}")))
}

async fn admitted_without_body<S: RobinState>(state: &S, request: Request) -> Result<(), Response> {
    admitted_bytes(state, request).await.map(drop)
}

async fn admitted_bytes<S: RobinState>(state: &S, request: Request) -> Result<axum::body::Bytes, Response> {
    let (parts, body): (_, Body) = request.into_parts();
    if !state.tokens().admit(&parts.headers) {
        return Err(unauthorized());
    }
    match tokio::time::timeout(CLIENT_DEADLINE, to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(bad(format!("the body is longer than {BODY_LIMIT} bytes, or broke off"))),
        Err(_) => Err(bad("the body did not arrive in time")),
    }
}

/// The response to a request without a valid token.
pub(super) fn unauthorized() -> Response {
    let mut rejected = error(
        StatusCode::UNAUTHORIZED,
        "this call needs the token of the cluster's Secret: Authorization: Bearer TOKEN",
    );
    let headers = rejected.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    // The rest of the request is not read, so the connection is closed.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    rejected
}

/// Applies the deadline to a call. Dropping a late call is safe: every method of the state starts its work and does
/// not wait for it.
async fn within<T>(call: impl Future<Output = Result<T, Rejection>>) -> Result<T, Response> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(rejected)) => {
            let code = match &rejected {
                Rejection::Invalid(_) | Rejection::UnknownNode(_) => StatusCode::BAD_REQUEST,
                Rejection::Conflict(_) => StatusCode::CONFLICT,
                Rejection::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Err(error(code, &rejected.to_string()))
        }
        Err(_) => Err(error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the servers did not respond in time; call again",
        )),
    }
}

async fn answer(act: impl Future<Output = Result<Response, Response>>) -> Response {
    act.await.unwrap_or_else(|rejected| rejected)
}

fn status<T: Serialize>(word: T) -> Response {
    Json(api::Status { status: word }).into_response()
}

fn bad(what: impl AsRef<str>) -> Response {
    error(StatusCode::BAD_REQUEST, what.as_ref())
}

fn error(code: StatusCode, what: &str) -> Response {
    let body = ErrorBody { error: what.to_owned() };
    (code, Json(body)).into_response()
}
