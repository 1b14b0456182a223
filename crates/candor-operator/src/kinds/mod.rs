//! What differs between the kinds: each folder builds the objects of one of them.

pub mod redkey;
