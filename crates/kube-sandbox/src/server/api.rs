//! The server's handle and the steps of a request: authenticate, parse, authorize, execute.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, Method, Request};
use jiff::Timestamp;
use tower::ServiceExt;

use super::query::Query;
use super::rbac::Question;
use super::respond::{self, Reply};
use super::route::RequestInfo;
use super::tokens::TokenKey;
use super::user::User;
use super::{body, discovery, reviews, update};
use crate::apply::Writer;
use crate::kinds::{Kind, Registry};
use crate::pod_access::PodAccess;
use crate::status::ApiError;
use crate::store::{Object, ObjectKey, Store, WriteError};

/// The API server without its sockets. Cloning it is cheap; all clones are one server.
#[derive(Clone)]
pub struct Api {
    state: Arc<State>,
}

struct State {
    store: Store,
    kinds: Registry,
    pods: OnceLock<Arc<dyn PodAccess>>,
    tokens: TokenKey,
    /// The certificate clients trust, in PEM.
    authority: OnceLock<String>,
    log_requests: AtomicBool,
    /// See [`Api::lock_allocations`].
    allocations: Mutex<()>,
    /// See [`Api::crd_written`].
    installation: Mutex<()>,
}

/// One request about a resource, its body read.
pub(super) struct Call {
    pub info: RequestInfo,
    /// The authenticated user.
    pub user: User,
    pub query: Query,
    pub headers: HeaderMap,
    pub kind: Arc<Kind>,
    pub body: Bytes,
    pub warnings: Mutex<Vec<String>>,
    /// A strategic patch without the directives that took effect, once it was merged: errors print it in this form.
    pub used_patch: OnceLock<serde_json::Value>,
}

impl Call {
    /// The table its objects are in. Both groups of events share one.
    pub fn table(&self) -> String {
        table_of(&self.kind)
    }

    /// The writer for the managed fields: the field manager, or the client's name without its version.
    pub fn writer(&self) -> Writer<'_> {
        let agent = self
            .headers
            .get(USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        let agent = agent.split('/').next().unwrap_or_default();
        Writer {
            manager: self.query.get("fieldManager").unwrap_or(agent),
            subresource: &self.info.subresource,
            now: Timestamp::now(),
        }
    }

    /// Something the client should know although its request succeeds.
    pub fn warn(&self, warning: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.iter().any(|w| w == warning) {
            warnings.push(warning.to_owned());
        }
    }
}

/// The table of a kind's objects.
pub(super) fn table_of(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" | "events.k8s.io" => kind.plural.clone(),
        group => format!("{}.{group}", kind.plural),
    }
}

impl Api {
    /// An empty server. It fails only where the system has no randomness for its key.
    pub fn new() -> Result<Self, ring::error::Unspecified> {
        Ok(Self {
            state: Arc::new(State {
                store: Store::new(),
                kinds: Registry::builtin(),
                pods: OnceLock::new(),
                tokens: TokenKey::new()?,
                authority: OnceLock::new(),
                log_requests: AtomicBool::new(false),
                allocations: Mutex::default(),
                installation: Mutex::default(),
            }),
        })
    }

    /// Whether every request is logged (target `kube_sandbox::requests`, level info).
    pub fn log_requests(&self, log: bool) {
        self.state.log_requests.store(log, Ordering::Relaxed);
    }

    pub(super) fn token_key(&self) -> &TokenKey {
        &self.state.tokens
    }

    pub(super) fn set_authority(&self, pem: &str) {
        let _ = self.state.authority.set(pem.to_owned());
    }

    pub(super) fn allocations(&self) -> &Mutex<()> {
        &self.state.allocations
    }

    pub(super) fn installation(&self) -> &Mutex<()> {
        &self.state.installation
    }

    /// The certificate clients trust, in PEM.
    pub fn authority(&self) -> Option<&str> {
        self.state.authority.get().map(String::as_str)
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.state.store
    }

    pub(super) fn kinds(&self) -> &Registry {
        &self.state.kinds
    }

    /// Where logs and exec go. The first kubelet to register stays.
    pub fn set_pod_access(&self, pods: Arc<dyn PodAccess>) {
        let _ = self.state.pods.set(pods);
    }

    /// The kubelet, once it is there.
    pub fn pod_access(&self) -> Option<&Arc<dyn PodAccess>> {
        self.state.pods.get()
    }

    /// A client inside this process, without sockets, as a given user.
    pub fn client_as(&self, name: &str, groups: &[&str]) -> kube::Client {
        let user = User::new(name, groups.iter().copied());
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (api, user) = (api.clone(), user.clone());
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(user);
                Ok::<_, Infallible>(api.handle(request).await)
            }
        });
        kube::Client::new(service.boxed_clone(), "default")
    }

    /// Answers one request. The user is what the transport proved (an extension of type [`User`]), if anything.
    pub async fn handle(&self, request: Request<Body>) -> Reply {
        let started = self.state.log_requests.load(Ordering::Relaxed).then(|| {
            let query = request.uri().path_and_query().map(ToString::to_string);
            (Instant::now(), request.method().clone(), query.unwrap_or_default())
        });
        let mut who = User::default();
        let reply = match self.route(request, &mut who).await {
            Ok(reply) => reply,
            Err(error) => respond::error(&error),
        };
        if let Some((started, method, path)) = started {
            tracing::info!(
                target: "kube_sandbox::requests",
                %method, path, user = who.name, code = reply.status().as_u16(),
                micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            );
        }
        reply
    }

    async fn route(&self, request: Request<Body>, who: &mut User) -> Result<Reply, ApiError> {
        let (mut parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        let user = self.authenticate(parts.extensions.remove::<User>(), &parts.headers)?;
        who.clone_from(&user);
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), query.flag("watch"));
        self.allow(&user, &Question::of(&info).about_one(query.get("fieldSelector")))?;
        if !info.is_resource {
            return discovery::non_resource(self, &parts.method, &parts.uri, &parts.headers);
        }
        if let Some(review) = reviews::find(&info) {
            return self.review(review, &info, &user, &parts.headers, &body::read(body).await?);
        }
        let connects = matches!(info.subresource.as_str(), "exec" | "attach" | "portforward" | "proxy");
        let call = Call {
            kind: self.served(&info)?,
            query,
            body: if connects {
                Bytes::new()
            } else {
                body::read(body).await?
            },
            headers: parts.headers.clone(),
            info,
            user,
            warnings: Mutex::default(),
            used_patch: OnceLock::new(),
        };
        if call.info.subresource == "exec" && call.kind.plural == "pods" {
            return self.exec(&call, parts).await;
        }
        let reply = match self.resource(&parts.method, &call).await {
            Ok(reply) => reply,
            Err(error) => respond::error(&error),
        };
        let warnings = call.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(respond::warn(reply, &warnings))
    }

    fn served(&self, info: &RequestInfo) -> Result<Arc<Kind>, ApiError> {
        let kind = self
            .kinds()
            .find(&info.group, &info.version, &info.resource)
            .ok_or_else(|| {
                // Groups of custom resources alone are another server's, and know no page for what they do not serve.
                let is_built_in = self.kinds().all().iter().any(|k| k.group == info.group && !k.custom);
                if is_built_in {
                    ApiError::not_served()
                } else {
                    ApiError::no_page()
                }
            })?;
        let namespace_matches = kind.namespaced || info.namespace.is_empty() || info.resource == "namespaces";
        if info.too_deep
            || !namespace_matches
            || (kind.namespaced && info.namespace.is_empty() && !info.name.is_empty())
        {
            return Err(if kind.custom {
                ApiError::no_page()
            } else {
                ApiError::not_served()
            });
        }
        Ok(kind)
    }

    async fn resource(&self, method: &Method, call: &Call) -> Result<Reply, ApiError> {
        let known = match call.info.subresource.as_str() {
            "" => true,
            "status" => call.kind.has_status,
            "scale" => call.kind.scale.is_some(),
            other => call.kind.subresources.iter().any(|s| s == other),
        };
        if !known && call.kind.custom {
            let kind = &call.kind;
            return Err(ApiError::not_found(&kind.group, &kind.plural, &call.info.name));
        }
        if !known {
            return Err(ApiError::not_served());
        }
        let everywhere = call.kind.namespaced && call.info.namespace.is_empty();
        match (method.as_str(), call.info.verb.as_str(), call.info.subresource.as_str()) {
            (_, "get", "" | "status") => self.get(call),
            (_, "get", "log") => self.logs(call).await,
            (_, "get" | "update" | "patch", "scale") => self.scale(call),
            ("POST", _, "binding") => self.bind(call),
            ("POST", _, "eviction") => self.evict(call),
            ("POST", _, "token") => self.request_token(call),
            (_, "list", "") => self.list(call),
            (_, "watch", "") => self.watch(call),
            (_, "create", "") if (call.info.name.is_empty() || call.kind.custom) && !everywhere => {
                self.await_default_account(call).await;
                self.create(call)
            }
            ("PUT" | "PATCH", _, _) if call.info.name.is_empty() && call.kind.custom => {
                Err(ApiError::bad_request("name must be provided"))
            }
            ("PUT" | "PATCH", _, _) if call.info.name.is_empty() => Err(ApiError::method_not_allowed()),
            (_, "update", "" | "status" | "finalize" | "resize" | "ephemeralcontainers") => self.put(call),
            (_, "patch", "" | "status" | "resize" | "ephemeralcontainers") => self.patch(call),
            (_, "delete", "") => self.delete(call),
            (_, "deletecollection", "") if !everywhere => self.delete_collection(call).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Changes one object in place and retries after a concurrent write. Removes an object that is being deleted and lost
    /// its last finalizer.
    pub(super) fn modify(
        &self,
        table: &str,
        key: &ObjectKey,
        mut change: impl FnMut(&mut serde_json::Value) -> Result<(), ApiError>,
    ) -> Result<Arc<Object>, ApiError> {
        loop {
            let (plural, group) = table.split_once('.').unwrap_or((table, ""));
            let gone = || ApiError::not_found(group, plural, &key.name);
            let current = self.store().get(table, key).ok_or_else(gone)?;
            let mut new = current.value().clone();
            change(&mut new)?;
            if new == *current.value() {
                return Ok(current);
            }
            let written = if update::is_finished(&new) {
                self.store().delete(table, key.clone(), current.revision())
            } else {
                self.store().replace(table, key.clone(), current.revision(), new)
            };
            match written {
                Ok(object) => return Ok(object),
                Err(WriteError::Changed) => {}
                Err(_) => return Err(gone()),
            }
        }
    }
}
