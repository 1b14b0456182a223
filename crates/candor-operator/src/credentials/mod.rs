//! Secrets, passwords and certificates.
//!
//! | topic | module |
//! |---|---|
//! | Secrets that users made | `secrets` |
//! | the operator's own passwords | `passwords` |
//! | servers that reject the operator's user: proof of membership, repair | [`repair`] |
//! | the certificates of a cluster; the one that each server presents | `certificates`, `presented` |
//! | making the kubelet update a certificate in a pod | `kubelet_refresh` |

pub(crate) mod certificates;
pub(crate) mod kubelet_refresh;
pub(crate) mod passwords;
pub(crate) mod presented;
pub mod repair;
pub(crate) mod secrets;
