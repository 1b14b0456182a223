//! What the kinds and patches do to objects, without a server; the real server's answers are in `fixtures`.

mod builtin_rejections;
mod custom_schema;
mod deployed_crds;
mod openapi;
mod real_responses;
mod server_side_apply;
mod strategic_merge;
mod tables;
