//! What runs inside pods, with real servers: the objects of a cluster on a sandbox, and the scripts on their own.

mod cluster;
mod credentials;
mod keys;
mod moving;
mod redkey;
mod restart;
mod servers;
mod world;
