//! Pods as real processes.

mod bench;
mod faults;
mod lifeline;
mod pods;
mod probes;
mod volumes;
mod whole;
