//! The controllers of a control plane, as far as operators and kubectl need them.

mod deployment;
mod hash;
pub(crate) mod machine;
mod owners;
mod plane;
mod pods;
mod replicaset;
mod statefulset;
