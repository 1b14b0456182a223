//! The program as people run it: on a cluster of real servers with an operator that it installed itself, on simulated
//! members where those suffice, in pipes and in a real terminal, with good words and bad ones.

#[cfg(feature = "sandbox")]
mod all_words;
mod bad_input;
mod canaries;
mod desk;
mod exporter;
mod hand;
mod kubectl;
mod narrow;
mod no_cluster;
mod plan;
mod probes;
#[cfg(feature = "sandbox")]
mod real;
mod terminal;
mod top;
