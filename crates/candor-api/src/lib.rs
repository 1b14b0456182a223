//! Candor's custom resources. Knows no behaviour.
//!
//! | you look for | it is in |
//! |---|---|
//! | what a person writes: `ValkeyCluster.spec` | [`valkey::spec`] |
//! | what Candor answers: `ValkeyCluster.status` | [`valkey::status`] |
//! | the rules the API server enforces | beside the field they are about, in [`valkey::spec`] |
//! | the conditions and reasons, with meaning and severity | [`valkey::conditions`] |
//! | what to do about each reason | [`valkey::advice`] |
//! | the events | [`valkey::events`] |
//! | the status of one member: `ValkeyNode` | [`valkey::node`] |
//! | a member's conditions and reasons | [`valkey::node_conditions`] |
//! | `RedkeyCluster`: spec, status, conditions, advice, events | [`redkey`] |
//! | a condition with a severity | [`condition`] |
//! | pieces of schema that no derive generates | [`schema`] |
//! | the CRDs as YAML | [`crds`] |
//! | the pages that are written from all of it | [`mod@reference`] |
#![forbid(unsafe_code)]

pub mod condition;
pub mod crds;
pub mod redkey;
pub mod reference;
pub mod schema;
pub mod valkey;

pub use condition::Condition;
pub use redkey::spec::{RedkeyCluster, RedkeyClusterSpec};
pub use redkey::status::RedkeyClusterStatus;
pub use valkey::node::{ValkeyNode, ValkeyNodeSpec, ValkeyNodeStatus};
pub use valkey::spec::{ValkeyCluster, ValkeyClusterSpec};
pub use valkey::status::ValkeyClusterStatus;
