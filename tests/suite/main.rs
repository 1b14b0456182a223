//! The operator with real servers, every scenario audited: each in its own sandbox, or with `CANDOR_TEST_KUBECONFIG`
//! in its own namespace on a real cluster. `CANDOR_LOG=info` shows the operator's decisions.

mod bad_input;
mod crashes;
mod create;
mod heal;
mod lifecycle;
mod losses;
mod permissions;
mod redkey;
mod roll;
mod scale;
mod storage;
mod tls;
mod upgrade;
