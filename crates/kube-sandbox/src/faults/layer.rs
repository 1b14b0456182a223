//! Faults in the client's process: a tower layer for a `kube::Client`, or for any service that speaks HTTP.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::client::Body;
use tower::buffer::Buffer;
use tower::util::BoxService;
use tower::{BoxError, Layer, Service, ServiceExt};

use super::fault::{Fault, WatchFault};
use super::handle::{ChosenFaults, Done, Faults};
use super::lease;
use super::request::{RequestInfo, Verb};
use super::watch;
use crate::status::ApiError;

/// The body of an answer, of the server or of a fault.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// The server behind the faults, cloneable.
pub(super) type Upstream = Buffer<Request<Body>, BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>>;

/// What a client gets instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The request never reached the server.
    #[error("connection broken before the request was sent (a fault rule dropped it)")]
    Request,
    /// The server carried out the request, and its answer was lost.
    #[error("connection broken before the answer came (a fault rule lost it)")]
    Answer,
    /// The client is dead until it is revived.
    #[error("the client has crashed (by a fault rule)")]
    Crashed,
}

/// Puts faults in front of a service.
#[derive(Clone)]
pub struct FaultLayer {
    faults: Faults,
}

impl FaultLayer {
    pub(super) fn new(faults: Faults) -> Self {
        Self { faults }
    }
}

/// Requests that may wait for the server at once.
const WAITING: usize = 1024;

impl<S, B> Layer<S> for FaultLayer
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Service = FaultService;

    fn layer(&self, inner: S) -> FaultService {
        let boxed = inner
            .map_response(|answer: Response<B>| answer.map(|body| body.map_err(Into::into).boxed_unsync()))
            .map_err(Into::into);
        FaultService {
            faults: self.faults.clone(),
            upstream: Buffer::new(BoxService::new(boxed), WAITING),
        }
    }
}

/// A service with faults in front of it.
#[derive(Clone)]
pub struct FaultService {
    faults: Faults,
    upstream: Upstream,
}

impl Service<Request<Body>> for FaultService {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    /// Always: a request waits for the server inside its own future, where a fault may strike first.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { faults, upstream } = self.clone();
        let info = RequestInfo::of(&request);
        let chosen = faults.judge(&info);
        let life = chosen.life.clone();
        let passage = Passage {
            faults,
            upstream,
            info,
            chosen,
        };
        async move {
            if life.is_cancelled() {
                return Err(Lost::Crashed.into());
            }
            tokio::select! {
                biased;
                answer = passage.run(request) => answer,
                () = life.cancelled() => Err(Lost::Crashed.into()),
            }
        }
        .boxed()
    }
}

/// One request's way through the faults.
struct Passage {
    faults: Faults,
    upstream: Upstream,
    info: RequestInfo,
    chosen: ChosenFaults,
}

/// What remains to be done to the answer.
#[derive(Default)]
struct After {
    lose: bool,
    crash: bool,
    stale: Option<(String, usize)>,
    watch: Vec<(String, WatchFault)>,
}

impl Passage {
    async fn run(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let mut after = After::default();
        for (rule, fault) in std::mem::take(&mut self.chosen.strikes) {
            self.faults
                .record(self.chosen.number, &self.info, &rule, Done::Fault(fault.name()));
            match fault {
                Fault::Reject {
                    code,
                    reason,
                    message,
                    retry_after,
                } => return Ok(rejection(&ApiError::new(code, reason, message), retry_after)),
                Fault::TimeOut(wait) => {
                    tokio::time::sleep(wait).await;
                    let message = "Timeout: request did not complete within the allotted timeout";
                    return Ok(rejection(&ApiError::new(504, "Timeout", message), None));
                }
                Fault::Delay(wait) => tokio::time::sleep(wait).await,
                Fault::Drop => return Err(Lost::Request.into()),
                Fault::LoseResponse => after.lose = true,
                Fault::Crash => after.crash = true,
                Fault::StaleRead { back } => after.stale = Some((rule, back)),
                Fault::Watch(fault) => after.watch.push((rule, fault)),
                Fault::LoseLease { to } => {
                    lease::take(&mut self.upstream, &self.info, &to).await?;
                    let why =
                        "the object has been modified; please apply your changes to the latest version and try again";
                    let conflict = ApiError::conflict(&self.info.group, &self.info.resource, &self.info.name, why);
                    return Ok(rejection(&conflict, None));
                }
            }
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        let answer = self.upstream.ready().await?.call(request).await?;
        if self.info.writes() {
            self.faults.passed_write(&self.info);
        }
        if after.crash {
            self.faults.crash();
            return Err(Lost::Crashed.into());
        }
        if after.lose {
            return Err(Lost::Answer.into());
        }
        if self.info.verb == Verb::Watch {
            return Ok(self.stream(answer, after.watch));
        }
        self.remember(answer, &query, after.stale).await
    }

    /// A watch: its events go through the watch faults, and it ends with the client's life.
    fn stream(self, answer: Response<ResponseBody>, faults: Vec<(String, WatchFault)>) -> Response<ResponseBody> {
        let life = self.chosen.life.clone();
        let answer = if faults.is_empty() || !answer.status().is_success() {
            answer
        } else {
            let (head, body) = answer.into_parts();
            let origin = watch::Origin {
                faults: self.faults,
                number: self.chosen.number,
                info: self.info,
            };
            Response::from_parts(head, watch::disturb(body, origin, faults))
        };
        answer.map(|body| StreamBody::new(BodyStream::new(body).take_until(life.cancelled_owned())).boxed_unsync())
    }

    /// Keeps the answer for stale reads, and gives an older one where a rule asked for it.
    async fn remember(
        self,
        answer: Response<ResponseBody>,
        query: &str,
        stale: Option<(String, usize)>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let plain = answer.status().is_success() && matches!(self.info.subresource.as_str(), "" | "status" | "scale");
        if !plain || self.faults.with_snapshots(|_| ()).is_none() {
            return Ok(answer);
        }
        let (mut head, body) = answer.into_parts();
        let mut bytes = body.collect().await?.to_bytes();
        let older = self.faults.with_snapshots(|snapshots| {
            snapshots.keep(&self.info, query, &bytes);
            stale
                .as_ref()
                .and_then(|(_, back)| snapshots.older(&self.info, query, *back))
        });
        match (older.flatten(), stale) {
            (Some(older), _) => {
                head.headers.remove(header::CONTENT_LENGTH);
                bytes = older;
            }
            (None, Some((rule, _))) => self
                .faults
                .record(self.chosen.number, &self.info, &rule, Done::NothingOlder),
            (None, None) => {}
        }
        Ok(Response::from_parts(head, whole(bytes)))
    }
}

/// A body that is all there.
pub(super) fn whole(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// A `Status` as a server would send it.
fn rejection(error: &ApiError, retry_after: Option<u32>) -> Response<ResponseBody> {
    let mut status = error.to_value();
    if let Some(seconds) = retry_after {
        status["details"] = serde_json::json!({ "retryAfterSeconds": seconds });
    }
    let mut answer = Response::new(whole(Bytes::from(status.to_string())));
    *answer.status_mut() = http::StatusCode::from_u16(error.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}
