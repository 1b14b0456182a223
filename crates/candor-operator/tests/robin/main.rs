//! Robin's process with real servers and an API server: what it observes and publishes, what its HTTP API answers, and
//! how it follows changes of pods, spec and files.

mod bench;
mod calls;
mod faults;
mod files;
mod maintenance_requests;
mod observing;
#[allow(dead_code)] // it serves other tests too
#[path = "../../../valkey-admin/tests/servers/mod.rs"]
mod servers;
