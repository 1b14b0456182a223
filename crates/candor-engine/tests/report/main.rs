//! Reports about a cluster: the contract's table row by row, the examples of the specification, events, and
//! properties.

mod events;
mod examples;
mod failing;
mod laws;
mod nodes;
mod placement;
mod planned_restarts;
mod rejected;
mod scene;
mod table;
