//! Simulated members for tests: a world of servers in one process, each on its loopback address, that speak
//! the protocol, keep the cluster's map by gossip, follow, fail over and move slots. They have no data, only counts
//! of keys. Hundreds of clusters fit into one test, and a minute of a cluster's life into a second.
//!
//! | topic | module |
//! |---|---|
//! | starting, ending, freezing members | [`world`] |
//! | pods that run as members, without a kubelet | [`pods`] |
//! | one member's state | [`node`] |
//! | how maps spread, members are missed, replicas follow and take over | [`gossip`] |
//! | commands and their answers | [`commands`], [`cluster`], [`users`] |
//! | the socket | [`wire`] |
//!
//! What is believable: MEET and handshakes, bans after FORGET, epochs that settle arguments about slots, suspicion
//! after the node timeout and failure by majority, elections, agreed and forced failovers and takeovers, links and
//! copies, atomic and legacy slot moves, users with hashed passwords. What is not: data, permissions, latency.
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
pub use world::{Timing, Undecodable, Whim, World};
