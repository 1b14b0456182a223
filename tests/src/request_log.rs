//! The operator's requests to the API server: which permissions it used, and whether one was missing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube_sandbox::faults::{RequestInfo, Verb};
use tower::{Layer, Service};

/// A permission: namespace (empty for cluster-wide), API group, resource with its subresource, verb.
pub type Permission = (String, String, String, String);

/// A client layer that records requests. Clones share the records.
#[derive(Clone, Default)]
pub struct RequestLog {
    records: Arc<Mutex<Records>>,
}

#[derive(Default)]
struct Records {
    used: BTreeSet<Permission>,
    forbidden: BTreeSet<String>,
}

impl RequestLog {
    /// Permissions that were used and granted.
    pub fn used(&self) -> BTreeSet<Permission> {
        self.lock().used.clone()
    }

    /// Requests that were forbidden.
    pub fn forbidden(&self) -> BTreeSet<String> {
        self.lock().forbidden.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: &RequestInfo, answer: StatusCode) {
        if request.resource.is_empty() {
            return;
        }
        if answer == StatusCode::FORBIDDEN {
            self.lock().forbidden.insert(request.to_string());
            return;
        }
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            sub => format!("{}/{sub}", request.resource),
        };
        let used = |verb: Verb| {
            let (namespace, group) = (request.namespace.clone(), request.group.clone());
            (namespace, group, resource.clone(), verb.as_str().to_owned())
        };
        let mut records = self.lock();
        records.used.insert(used(request.verb));
        // Applying an object that does not exist yet needs both permissions.
        if request.verb == Verb::Patch && answer == StatusCode::CREATED {
            records.used.insert(used(Verb::Create));
        }
    }
}

impl<S> Layer<S> for RequestLog {
    type Service = RecordingService<S>;

    fn layer(&self, inner: S) -> RecordingService<S> {
        RecordingService {
            inner,
            request_log: self.clone(),
        }
    }
}

/// A client service that records requests.
#[derive(Clone)]
pub struct RecordingService<S> {
    inner: S,
    request_log: RequestLog,
}

impl<S, B> Service<Request<Body>> for RecordingService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let info = RequestInfo::of(&request);
        let request_log = self.request_log.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await?;
            request_log.note(&info, answer.status());
            Ok(answer)
        }
        .boxed()
    }
}
