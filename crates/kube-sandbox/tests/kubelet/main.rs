//! Pods as real processes.

mod bench;
mod faults;
mod incluster;
mod lifeline;
mod pods;
mod probes;
mod volumes;
mod whole;
