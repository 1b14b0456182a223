//! A `RedkeyCluster` of real servers with its Robin.

mod adoption;
mod robin;
mod rows;
mod volumes;
