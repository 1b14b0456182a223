//! The CLI as users run it: on a cluster of real servers with an operator that it installed, on simulated members
//! where those suffice, in pipes and in a real terminal, with valid and invalid arguments.

#[cfg(feature = "sandbox")]
mod all_commands;
mod bad_input;
mod both_kinds;
mod canaries;
mod desk;
mod exporter;
mod kubectl;
mod narrow;
mod no_cluster;
mod plan;
mod probes;
#[cfg(feature = "sandbox")]
mod real;
#[cfg(feature = "sandbox")]
mod redkey_upkeep;
mod runner;
mod terminal;
mod top;
#[cfg(feature = "sandbox")]
mod writer;
