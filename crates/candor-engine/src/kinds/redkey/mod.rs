//! `RedkeyCluster` in the engine's terms.
//!
//! | you look for | it is in |
//! |---|---|
//! | the rows of `kubectl get rkcl -w` | [`rows`] |

pub mod rows;
