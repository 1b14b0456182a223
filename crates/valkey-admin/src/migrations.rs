//! `CLUSTER GETSLOTMIGRATIONS` (Valkey 9 and later): the jobs a server remembers since it started.

use serde::{Deserialize, Serialize};

use crate::slot::{SlotRange, SlotSet};
use crate::{NodeId, ParseError, Reply};

const COMMAND: &str = "CLUSTER GETSLOTMIGRATIONS";

/// Which side of a migration the asked node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// Slots come in.
    Import,
    /// Slots go out.
    Export,
}

/// How a migration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// Not over.
    Running,
    /// The slots have a new owner.
    Success,
    /// It ended; the slots are where they were.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// One migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// Its name, the same on both sides.
    pub name: String,
    /// Which side was asked.
    pub direction: Direction,
    /// What moves.
    pub slots: SlotSet,
    /// Where from; absent where the server does not say.
    pub source: Option<NodeId>,
    /// Where to.
    pub target: Option<NodeId>,
    /// Seconds since the Unix epoch.
    pub created: i64,
    /// Seconds since the Unix epoch of its last change.
    pub updated: i64,
    /// How it stands.
    pub progress: Progress,
    /// The server's own words.
    pub message: String,
}

/// Reads the answer; the newest job is first, as the server orders them.
pub fn parse(reply: &Reply) -> Result<Vec<Migration>, ParseError> {
    reply.items(COMMAND)?.iter().map(migration).collect()
}

fn migration(reply: &Reply) -> Result<Migration, ParseError> {
    let pairs = reply.pairs(COMMAND)?;
    let get = |wanted: &str| pairs.iter().find(|(key, _)| key == wanted).map(|(_, value)| *value);
    let need = |wanted: &'static str| get(wanted).ok_or_else(|| ParseError::new(COMMAND, wanted, "no such field"));
    let text = |wanted: &'static str| need(wanted)?.text(COMMAND);
    let node = |wanted: &str| match get(wanted) {
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
        // Ranges stand with blanks or commas between them.
        slots: text("slot_ranges")?
            .split([' ', ','])
            .filter(|part| !part.is_empty())
            .map(str::parse::<SlotRange>)
            .collect::<Result<_, _>>()?,
        source: node("source_node")?,
        target: node("target_node")?,
        created: need("create_time")?.int(COMMAND)?,
        updated: need("last_update_time")?.int(COMMAND)?,
        // Every state but the three final ones is a step on the way, and servers add steps.
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
