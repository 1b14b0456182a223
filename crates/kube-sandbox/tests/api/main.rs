//! The API server over HTTPS, with the client an operator would use.

mod apply;
mod bad_input;
mod common;
mod concurrency;
mod subresources;
mod users;
mod verbs;
