//! The API server: HTTPS, users, RBAC, routes, verbs, watches, discovery.
//!
//! | what | where |
//! |---|---|
//! | the server's handle and the order of a request's steps | [`Api`] |
//! | authentication: certificates, tokens, impersonation | `authn`, `tokens` |
//! | authorization | `rbac` |
//! | reviews of tokens and permissions | `reviews` |
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
//! | binding, eviction, logs; exec | `pods`, `exec` |
//! | serving CRDs | `crds` |
//! | one object through several versions | `convert` |
//! | label and field selectors | [`selectors`] |
//! | content negotiation | [`negotiate`] |
//! | bodies in protobuf | `protobuf` |
//! | discovery | `discovery` |
//! | what a cluster has from the start | `bootstrap` |
//! | certificates and kubeconfig | [`tls`] |
//! | the listener, its limits, and clients that stop reading | [`listen`], `stall` |

mod admission;
mod api;
mod authn;
mod body;
mod bootstrap;
pub mod clock;
mod convert;
mod crds;
mod create;
mod delete;
mod discovery;
mod exec;
pub mod listen;
mod meta;
pub mod negotiate;
mod patch;
mod pipeline;
mod pods;
mod protobuf;
mod query;
mod rbac;
mod read;
mod respond;
mod reviews;
pub mod route;
mod scale;
pub mod selectors;
mod services;
mod stall;
mod strategy;
pub mod tls;
mod tokens;
mod update;
mod user;
mod watch;

pub use api::Api;
pub use user::User;
