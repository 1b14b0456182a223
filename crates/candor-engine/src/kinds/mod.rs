//! The kinds of clusters. A kind is a thin translation: its spec into the desired state, its status into memory and
//! back, and the words of its conditions and events. Everything else in this crate knows no kind.

pub mod redkey;
pub mod valkey;
