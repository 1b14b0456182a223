//! The kinds of clusters. A kind is a thin translation: its spec into the desired state, its status into memory and
//! back, and the messages of its conditions and events. Everything else in this crate is independent of the kind.

pub mod redkey;
pub mod valkey;
