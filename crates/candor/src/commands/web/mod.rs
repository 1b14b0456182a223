//! `candor web`: a page with a live picture of every cluster.
//!
//! | you look for | it is in |
//! |---|---|
//! | what is watched, and what is known from it | `source`, `world`, `figures` |
//! | the page of all clusters and of one | `fleet`, `cluster` with `slots`, `members`, `timeline`, `actions` |
//! | the frame, small pieces, script and style sheet | `page`, `frames`, `marks`, `page.js`, `style.css` |
//! | what a viewer looks at, and the stream of its changes | `view`, `stream` |
//! | routes, and what every request must satisfy | `serve`, `guard` |
//! | logins, and what a viewer may see | `login`, `session`, `sight` |
//! | changes, with their confirmation | `change` |

mod actions;
mod change;
mod cluster;
mod figures;
mod fleet;
mod frames;
mod guard;
mod login;
mod marks;
mod members;
mod page;
mod serve;
mod session;
mod sight;
mod slots;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod timeline;
mod view;
mod world;

use std::error::Error;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, RwLock};

use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::connect::Connection;
use super::errors::CommandError;
use super::output::print;
use guard::Hosts;
use serve::{App, router};
use source::{Source, contact, follow, is_everywhere};
use world::World;

/// A page with a live picture of every cluster, for a browser.
// Each of them is an independent flag.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Args)]
#[command(mut_arg("namespace", |namespace| namespace.help("Only clusters of this namespace; all if not given")))]
#[command(after_help = "Examples:
  candor web                            serves http://127.0.0.1:8088 until Ctrl-C
  candor web --open                     ... and opens it in the browser
  candor web -n shop --actions          one namespace; changes are allowed, with your own permissions
  candor web --listen 127.0.0.1:9000    another address")]
pub struct Web {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8088")]
    listen: SocketAddr,
    /// Opens the page in the browser.
    #[arg(long)]
    open: bool,
    /// Allows changes: pause, resume, failover, restart, scale.
    #[arg(long)]
    actions: bool,
    /// Another name under which the page is opened; requests for any other host are rejected.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Asks every viewer for a Kubernetes token and shows what its owner may see; for a page inside the cluster.
    #[arg(long)]
    login: bool,
    #[command(flatten)]
    at: Connection,
}

impl Web {
    /// Serves the page until a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let everywhere = is_everywhere(&at, self.at.given_namespace().is_some()).await?;
        if !self.login && !self.listen.ip().is_loopback() {
            return Err(CommandError::Usage(format!(
                "{} can be reached from other hosts, and everybody there would have your permissions\nUse an address of this host, such as 127.0.0.1, or ask viewers for a token with --login",
                self.listen.ip()
            ))
            .into());
        }
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            let listen = self.listen;
            CommandError::Usage(format!(
                "listening on {listen}: {error}\nChoose another address with --listen"
            ))
        })?;
        let address = listener.local_addr()?;
        let shared = Arc::new(RwLock::new(World::new(Source::ALL)));
        let (changed, _) = watch::channel(0);
        for source in Source::ALL {
            tokio::spawn(follow(at.clone(), source, everywhere, shared.clone(), changed.clone()));
        }
        tokio::spawn(contact(at.clone(), shared.clone()));
        let app = Arc::new(App {
            at,
            shared,
            changed,
            watching: figures::Watching::default(),
            token: if self.actions { session::random() } else { None },
            sessions: self.login.then(session::Sessions::default),
            connection: self.at,
        });
        let hosts = Hosts::new(self.host.iter().cloned().chain([named(address)]));
        let url = format!("http://{address}/");
        let mode = if self.actions {
            "changes are allowed"
        } else {
            "read-only"
        };
        print(&format!("Serving {url} ({mode}). Ctrl-C ends it.\n"))?;
        if self.open {
            open(&url);
        }
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            served = axum::serve(listener, router(app, hosts)) => Ok(served?),
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    }
}

/// The host of an address as browsers write it.
fn named(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// Opens a page in the user's browser. It is a convenience: the address is printed in any case.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = std::process::Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        eprintln!("No browser could be started by {program}: open {url} yourself.");
    }
}
