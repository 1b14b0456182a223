//! `ValkeyCluster`: what differs from other kinds in one reconcile.

pub(crate) mod reconcile;
