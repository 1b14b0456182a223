//! The controllers and the scheduler on a running API server, without a kubelet.

mod concurrency;
mod garbage;
mod nodes;
mod scheduler;
mod services;
mod storage;
mod workloads;
mod world;
