//! The API server: HTTPS, users, RBAC, routes, verbs, watches, discovery.
//!
//! | you look for | it is in |
//! |---|---|
//! | the server's handle and the order of a request's steps | [`Api`] |
//! | paths | [`route`] |
//! | get and list | `read` |
//! | watch | `watch` |
//! | create | `create` |
//! | unknown fields, defaults and rules | `pipeline` |
//! | what admission plugins do | `admission`, `services` |
//! | update and patch | `update`, `patch` |
//! | delete and deletecollection | `delete` |
//! | what each kind's spec, status and generation do on a write | `strategy` |
//! | the scale subresource | `scale` |
//! | binding, eviction, logs | `pods` |
//! | definitions of kinds coming into force | `crds` |
//! | one object through several versions | `convert` |
//! | label and field selectors | [`selectors`] |
//! | content negotiation | [`negotiate`] |
//! | discovery | `discovery` |
//! | certificates and kubeconfig | [`tls`] |
//! | the listener | [`listen`] |

mod admission;
mod api;
mod body;
pub mod clock;
mod convert;
mod crds;
mod create;
mod delete;
mod discovery;
pub mod listen;
mod meta;
pub mod negotiate;
mod patch;
mod pipeline;
mod pods;
mod query;
mod read;
mod respond;
pub mod route;
mod scale;
pub mod selectors;
mod services;
mod strategy;
pub mod tls;
mod update;
mod user;
mod watch;

pub use api::Api;
pub use user::User;
