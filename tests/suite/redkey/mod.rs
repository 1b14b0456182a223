//! A `RedkeyCluster` of real servers with its Robin.

mod adoption;
mod memory;
mod robin;
mod rows;
mod volumes;
