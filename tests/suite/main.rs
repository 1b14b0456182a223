//! The operator with real servers, every scenario audited: on a sandbox each, or with `CANDOR_TEST_KUBECONFIG` on a real
//! cluster, one namespace each. `CANDOR_LOG=info` shows the operator's decisions.

mod bad_input;
mod crashes;
mod create;
mod heal;
mod lifecycle;
mod losses;
mod rights;
mod roll;
mod scale;
mod storage;
mod tls;
mod upgrade;
