//! Parser for `CLUSTER GETSLOTMIGRATIONS` (Valkey 9 and later): the slot migrations since the server started.

use serde::{Deserialize, Serialize};

use crate::slot::{SlotRange, SlotSet};
use crate::{NodeId, ParseError, Reply};

const COMMAND: &str = "CLUSTER GETSLOTMIGRATIONS";

/// Which side of a migration the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// The destination.
    Import,
    /// The source.
    Export,
}

/// State of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// In progress.
    Running,
    /// The slots have a new owner.
    Success,
    /// Failed; the source still owns the slots.
    Failed,
    /// Cancelled by a command.
    Cancelled,
}

/// One migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Its name, the same on both sides.
    pub name: String,
    /// Which side the server is.
    pub direction: Direction,
    /// The slots.
    pub slots: SlotSet,
    /// The source; absent if the server does not report it.
    pub source: Option<NodeId>,
    /// The destination.
    pub target: Option<NodeId>,
    /// Seconds since the Unix epoch.
    pub created: i64,
    /// Seconds since the Unix epoch of its last change.
    pub updated: i64,
    /// Its state.
    pub progress: Progress,
    /// Message of the server.
    pub message: String,
}

/// Parses the reply; the newest migration is first, as the server orders them.
pub fn parse(reply: &Reply) -> Result<Vec<Migration>, ParseError> {
    reply.items(COMMAND)?.iter().map(migration).collect()
}

fn migration(reply: &Reply) -> Result<Migration, ParseError> {
    let pairs = reply.pairs(COMMAND)?;
    let get = |field: &str| pairs.iter().find(|(key, _)| key == field).map(|(_, value)| *value);
    let need = |field: &'static str| get(field).ok_or_else(|| ParseError::new(COMMAND, field, "no such field"));
    let text = |field: &'static str| need(field)?.text(COMMAND);
    let node = |field: &str| match get(field) {
        None | Some(Reply::Nil) => Ok(None),
        Some(value) => {
            let id = value.text(COMMAND)?;
            if id.is_empty() { Ok(None) } else { id.parse().map(Some) }
        }
    };
    Ok(Migration {
        name: text("name")?,
        direction: match text("operation")?.to_ascii_lowercase().as_str() {
            "import" => Direction::Import,
            "export" => Direction::Export,
            other => return Err(ParseError::new(COMMAND, "IMPORT or EXPORT", other)),
        },
        // Ranges are separated by spaces or commas.
        slots: text("slot_ranges")?
            .split([' ', ','])
            .filter(|part| !part.is_empty())
            .map(str::parse::<SlotRange>)
            .collect::<Result<_, _>>()?,
        source: node("source_node")?,
        target: node("target_node")?,
        created: need("create_time")?.int(COMMAND)?,
        updated: need("last_update_time")?.int(COMMAND)?,
        // All states but the three final ones are in progress; newer servers add states.
        progress: match text("state")?.to_ascii_lowercase().as_str() {
            "success" => Progress::Success,
            "failed" => Progress::Failed,
            "cancelled" | "canceled" => Progress::Cancelled,
            _ => Progress::Running,
        },
        message: match get("message") {
            None | Some(Reply::Nil) => String::new(),
            Some(value) => value.text(COMMAND)?,
        },
    })
}
