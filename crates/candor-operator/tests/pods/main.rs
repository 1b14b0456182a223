//! What runs inside pods, with real servers: the objects of a cluster in a sandbox, and the scripts alone.

mod cluster;
mod credentials;
mod keys;
mod moving;
mod redkey;
mod restart;
mod servers;
mod stale_map;
mod world;
