//! What is told of a cluster: the contract's table row by row, the seed's examples, events, and laws.

mod by_our_hand;
mod events;
mod examples;
mod failing;
mod laws;
mod nodes;
mod refused;
mod scene;
mod table;
