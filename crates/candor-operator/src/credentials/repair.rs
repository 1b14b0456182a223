//! Servers that reject the operator's user: whether they are members of the cluster, and setting the user again.
//!
//! By the time an address is dialled, the pod may be gone and the address may belong to another server. A server that
//! rejects the operator's password is therefore written to only after it has proven that it is a member: by a node id
//! that status remembers, or by accepting the password of another of the operator's users. Proof and write use one
//! connection, so that they are about one process.

use std::collections::BTreeSet;

use candor_engine::memory::Memory;
use valkey_admin::NodeId;
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Node, NodeError};

use crate::objects::{EXPORTER, MIGRATOR, OPERATOR, REPLICATION, SystemPasswords, operator};

/// The user that may need no password on a server.
const DEFAULT: &str = "default";

/// What a repair needs: how a server proves that it is a member, and the operator's user.
#[derive(Clone, Debug, Default)]
pub struct Repair {
    /// Node ids that status remembers.
    ids: BTreeSet<NodeId>,
    /// The operator's other users, with the passwords that this cluster's pods were given.
    users: Vec<Credentials>,
    /// The rules of the operator's user.
    rules: Vec<String>,
}

/// Why a server was not repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The server is not proven to be a member: it may be any server.
    #[error(
        "the server at {0} rejects the operator's password and is not proven to be a member of this cluster: its node \
         id is not in status.topology, and it accepts none of the operator's other passwords"
    )]
    Unproven(std::net::SocketAddr),
    /// The server rejected a command or did not respond.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl Repair {
    /// A repair of the members in status, with the passwords of all the operator's users.
    pub fn new(memory: &Memory, passwords: &SystemPasswords) -> Self {
        let users = [
            (EXPORTER, &passwords.exporter),
            (REPLICATION, &passwords.replication),
            (MIGRATOR, &passwords.migrator),
        ];
        let users = users.map(|(user, password)| (user, password.clone()));
        Self::with(memory, users, &passwords.operator)
    }

    /// The same with only the passwords that are known.
    pub fn with(memory: &Memory, users: impl IntoIterator<Item = (&'static str, String)>, password: &str) -> Self {
        let members = memory.topology.values().flat_map(|shard| shard.members.values());
        let credentials = |(user, password): (&str, String)| Credentials {
            user: user.to_owned(),
            password,
        };
        Self {
            ids: members.copied().collect(),
            users: users.into_iter().map(credentials).collect(),
            rules: operator(password),
        }
    }

    /// Whether a server could be repaired: it is proven to be a member, and its user `default` needs no password and
    /// may set users. Writes nothing.
    pub async fn is_possible(&self, endpoint: &Endpoint) -> bool {
        let node = open(endpoint);
        let allowed = node.acl_dry_run(DEFAULT, &["ACL", "SETUSER", OPERATOR]).await;
        matches!(allowed, Ok(true)) && self.prove(&node).await.is_ok()
    }

    /// Sets the operator's user as the user `default`, once the server is proven to be a member.
    pub async fn perform(&self, endpoint: &Endpoint) -> Result<Node, RepairError> {
        let node = open(endpoint);
        self.prove(&node).await?;
        node.acl_set_user(OPERATOR, &self.rules).await?;
        Ok(node)
    }

    async fn prove(&self, node: &Node) -> Result<(), RepairError> {
        let id = node.my_id().await?;
        if self.ids.contains(&id) {
            return Ok(());
        }
        for user in &self.users {
            let credentials = Some(user.clone());
            let endpoint = Endpoint {
                credentials,
                ..node.endpoint().clone()
            };
            match Node::new(endpoint, Deadlines::default()).my_id().await {
                // The process that accepts the password is the process that the repair writes to.
                Ok(same) if same == id => return Ok(()),
                _ => {}
            }
        }
        Err(RepairError::Unproven(node.address()))
    }
}

/// Connects as the user `default` without a password.
fn open(endpoint: &Endpoint) -> Node {
    let endpoint = Endpoint {
        credentials: None,
        ..endpoint.clone()
    };
    Node::new(endpoint, Deadlines::default())
}
