//! `candor top`: a live view of a cluster, on the alternate screen.
//!
//! | you look for | it is in |
//! |---|---|
//! | where figures come from, and how often | `source` |
//! | what is shown, and what keys do to it | `model` |
//! | how it looks | `screen` |

pub(super) mod model;
pub(super) mod screen;
mod source;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use kube_status::tree::use_colour;
use ratatui::crossterm::event;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::cluster::Address;
use super::connect::Connection;
use super::errors::CommandError;
use super::snapshot::{Include, Snapshot};
use model::{Model, Press};

/// Interval at which ages are redrawn.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A live view of a cluster: slots, load, memory, lag, events.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor top shop

Keys: q quits, f freezes the screen, s sorts by another column, arrows scroll, ? explains keys and columns.")]
pub struct Top {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// The namespace of the operator's lease; everywhere if not given.
    #[arg(long, value_name = "NAME")]
    operator_namespace: Option<String>,
    #[command(flatten)]
    at: Connection,
}

impl Top {
    /// Shows it until a key or a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            let message = format!(
                "top needs a terminal; for a pipe use: candor status {} --watch",
                self.name
            );
            return Err(CommandError::Usage(message).into());
        }
        let at = self.at.connect().await?;
        let include = Include {
            operator_namespace: self.operator_namespace,
            servers: false,
            around: false,
        };
        // An error at the start ends the command; a later error is shown beside the last snapshot.
        let cluster = at.resolve(&self.name).await?;
        let first = Snapshot::take(&at, &cluster, &include).await?;
        let colour = use_colour(true, std::env::var_os("NO_COLOR").as_deref());
        let mut model = Model::new(first, colour);
        let (send, updates) = mpsc::channel(8);
        let source = tokio::spawn(source::run(at, cluster, include, send));
        let mut terminal = ratatui::try_init()?;
        let shown = show(&mut terminal, &mut model, updates).await;
        source.abort();
        ratatui::try_restore()?;
        shown
    }
}

/// Draws whenever there is something new, until a key or a signal ends it.
async fn show(
    terminal: &mut ratatui::DefaultTerminal,
    model: &mut Model,
    mut updates: mpsc::Receiver<source::Update>,
) -> Result<(), Box<dyn Error>> {
    let mut keys = presses();
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        model.now = Timestamp::now();
        terminal.draw(|frame| screen::draw(frame, model))?;
        tokio::select! {
            press = keys.recv() => match press {
                Some(press) if model.press(press) => {}
                // Quit, or the terminal is gone.
                _ => return Ok(()),
            },
            Some(update) = updates.recv() => model.update(update),
            () = tokio::time::sleep(HEARTBEAT) => {}
            _ = terminate.recv() => return Ok(()),
        }
    }
}

/// Key presses. Reading blocks, so it uses a separate thread, which ends with the process or with the terminal.
fn presses() -> mpsc::Receiver<Press> {
    let (pressed, presses) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(press) = Press::of(&event)
                && pressed.blocking_send(press).is_err()
            {
                return;
            }
        }
    });
    presses
}
