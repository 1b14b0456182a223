//! Derives of `kube-status`.
