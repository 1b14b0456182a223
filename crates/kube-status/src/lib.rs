//! Kubernetes status conditions done right.
#![forbid(unsafe_code)]
