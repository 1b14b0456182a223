//! Code that is specific to a kind: each folder builds the objects of one kind.

pub mod redkey;
