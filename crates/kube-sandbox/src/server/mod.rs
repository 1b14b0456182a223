//! The API server: HTTPS, users, RBAC, routes, verbs, watches, discovery.
//!
//! | you look for | it is in |
//! |---|---|
//! | the server's handle and the order of a request's steps | [`Api`] |
//! | paths | [`route`] |
//! | get and list | `read` |
//! | watch | `watch` |
//! | create | `create` |
//! | update and patch | `update`, `patch` |
//! | delete and deletecollection | `delete` |
//! | what each kind's spec, status and generation do on a write | `strategy` |
//! | label and field selectors | [`selectors`] |
//! | content negotiation | [`negotiate`] |
//! | discovery | `discovery` |
//! | certificates and kubeconfig | [`tls`] |
//! | the listener | [`listen`] |

mod api;
mod body;
pub mod clock;
mod create;
mod delete;
mod discovery;
pub mod listen;
mod meta;
pub mod negotiate;
mod patch;
mod query;
mod read;
mod respond;
pub mod route;
pub mod selectors;
mod strategy;
pub mod tls;
mod update;
mod user;
mod watch;

pub use api::Api;
pub use user::User;
