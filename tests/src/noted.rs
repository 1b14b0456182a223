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
pub type Right = (String, String, String, String);

/// A client layer that records requests. Clones share the records.
#[derive(Clone, Default)]
pub struct Noted {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    used: BTreeSet<Right>,
    refused: BTreeSet<String>,
}

impl Noted {
    /// Permissions that were used and granted.
    pub fn used(&self) -> BTreeSet<Right> {
        self.lock().used.clone()
    }

    /// Requests that were forbidden.
    pub fn refused(&self) -> BTreeSet<String> {
        self.lock().refused.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: &RequestInfo, answer: StatusCode) {
        if request.resource.is_empty() {
            return;
        }
        if answer == StatusCode::FORBIDDEN {
            self.lock().refused.insert(request.to_string());
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
        let mut seen = self.lock();
        seen.used.insert(used(request.verb));
        // Applying an object that does not exist yet needs both permissions.
        if request.verb == Verb::Patch && answer == StatusCode::CREATED {
            seen.used.insert(used(Verb::Create));
        }
    }
}

impl<S> Layer<S> for Noted {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        Noting {
            inner,
            noted: self.clone(),
        }
    }
}

/// A client service that records requests.
#[derive(Clone)]
pub struct Noting<S> {
    inner: S,
    noted: Noted,
}

impl<S, B> Service<Request<Body>> for Noting<S>
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
        let noted = self.noted.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await?;
            noted.note(&info, answer.status());
            Ok(answer)
        }
        .boxed()
    }
}
