//! Reports about a cluster: the contract's table row by row, the examples of the specification, events, and
//! properties.

mod by_our_hand;
mod events;
mod examples;
mod failing;
mod laws;
mod nodes;
mod placement;
mod rejected;
mod scene;
mod table;
