//! Kubernetes objects made from a spec, without a client.
