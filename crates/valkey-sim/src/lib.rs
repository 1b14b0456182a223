//! Simulated Valkey servers for tests. Many members run in one process, each on its own loopback address. They speak
//! the protocol, spread the cluster map by gossip, replicate, fail over and migrate slots. They store no data, only
//! counts of keys. Hundreds of clusters fit into one test, and a minute of a cluster fits into a second.
//!
//! | topic | module |
//! |---|---|
//! | starting, stopping and freezing members; injected replies | [`world`] |
//! | pods that run as members, without a kubelet | [`pods`] |
//! | the state of one member | [`node`] |
//! | gossip, failure detection, replication, elections | [`gossip`] |
//! | commands and their replies | [`commands`], [`cluster`], [`users`] |
//! | the socket | [`wire`] |
//!
//! Simulated: MEET and handshakes, bans after FORGET, config epochs that decide who owns a slot, failure detection after
//! the node timeout and by majority, elections, planned and forced failovers and takeovers, replication links and full
//! syncs, atomic and legacy slot migration, users with hashed passwords. Not simulated: data, permissions, latency.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod commands;
pub mod gossip;
pub mod node;
pub mod pods;
pub mod users;
pub mod wire;
pub mod world;

pub use node::{Disk, Start};
pub use world::{InjectedReply, Timing, Undecodable, World};
