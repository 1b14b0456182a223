//! Moving slots. A mover works for a short while and comes back: what it needs to go on is in the cluster itself,
//! so that it may be killed between any two commands.

mod legacy;
mod push;

use std::collections::HashMap;
use std::time::Duration;

pub use legacy::Legacy;
pub use push::Push;

use crate::capability::MoveBy;
use crate::client::{Node, NodeError};
use crate::{NodeId, SlotSet};

/// Slots that go from one primary to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The owner.
    pub from: NodeId,
    /// The new owner.
    pub to: NodeId,
    /// The slots.
    pub slots: SlotSet,
}

/// The primaries that take part, by id: sources, destinations, and the others that must learn of it.
pub type Primaries = HashMap<NodeId, Node>;

/// How far one turn came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Slots that changed their owner in this turn.
    pub moved: SlotSet,
    /// Slots that still have to.
    pub left: usize,
    /// Failed moves with the message of the server: the source still owns the slots.
    pub failed: Vec<(Move, String)>,
}

impl Advance {
    /// Whether nothing is left to move.
    pub fn done(&self) -> bool {
        self.left == 0 && self.failed.is_empty()
    }
}

/// Why a turn could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// A node of the move is not among the primaries given.
    #[error("node {0} takes part in a move but cannot be reached")]
    UnknownNode(NodeId),
    /// A node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// One way to move slots. Room for Redis 8.4's pull: it is a third implementation, chosen by [`MoveBy::Pull`].
pub trait SlotMover: Send + Sync {
    /// Which way it is.
    fn by(&self) -> MoveBy;

    /// Goes on with the moves for at most `budget`, from whatever state the cluster is in.
    fn advance(
        &self,
        primaries: &Primaries,
        moves: &[Move],
        budget: Duration,
    ) -> impl Future<Output = Result<Advance, MoveError>> + Send;
}

fn primary(primaries: &Primaries, id: NodeId) -> Result<&Node, MoveError> {
    primaries.get(&id).ok_or(MoveError::UnknownNode(id))
}
