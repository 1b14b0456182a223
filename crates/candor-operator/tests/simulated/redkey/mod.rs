//! Ways to break a `RedkeyCluster`: none loses a key that was to be kept, and none ends in another state than the spec's.

mod by_hand;
mod edits;
mod shapes;
