//! A client that writes without a pause, and knows which of its writes were acknowledged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two writes.
const PAUSE: Duration = Duration::from_micros(500);

/// The first line of a server's reply; empty if it does not reply.
pub fn ask(address: &str, command: &str) -> String {
    let mut client = Client::default();
    let at = address.parse().map(|ip| SocketAddr::new(ip, 6379));
    at.ok().and_then(|at| client.send(at, command)).unwrap_or_default()
}

/// The same, with a password.
pub fn ask_with(address: &str, password: &str, command: &str) -> String {
    let mut client = Client::default();
    let at = address.parse().map(|ip| SocketAddr::new(ip, 6379));
    let reply = at.ok().and_then(|at| {
        let login = client.send(at, &format!("AUTH {password}"))?;
        if login == "+OK" {
            client.send(at, command)
        } else {
            Some(login)
        }
    });
    reply.unwrap_or_default()
}

/// Connections to servers, by address. It follows redirections.
#[derive(Default)]
struct Client {
    open: HashMap<SocketAddr, BufReader<TcpStream>>,
}

impl Client {
    /// The first line of a reply; none if the server does not reply.
    fn send(&mut self, at: SocketAddr, command: &str) -> Option<String> {
        let reply = self.try_send(at, command);
        if reply.is_none() {
            self.open.remove(&at);
        }
        reply
    }

    fn try_send(&mut self, at: SocketAddr, command: &str) -> Option<String> {
        let connection = match self.open.entry(at) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(none) => {
                let stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
                stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
                none.insert(BufReader::new(stream))
            }
        };
        connection
            .get_mut()
            .write_all(format!("{command}\r\n").as_bytes())
            .ok()?;
        let mut line = String::new();
        connection.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_owned();
        if let Some(length) = line.strip_prefix('$').filter(|length| *length != "-1") {
            let _: usize = length.parse().ok()?;
            let mut value = String::new();
            connection.read_line(&mut value).ok().filter(|read| *read > 0)?;
            return Some(value.trim_end().to_owned());
        }
        Some(line)
    }

    /// Sends a command to whichever server serves its key.
    fn at_owner(&mut self, servers: &[SocketAddr], command: &str) -> Option<String> {
        for first in servers {
            let (mut at, mut asking) = (*first, false);
            for _ in 0..5 {
                if asking {
                    self.send(at, "ASKING");
                }
                let Some(reply) = self.send(at, command) else { break };
                let redirected = reply.strip_prefix("-MOVED ").or_else(|| reply.strip_prefix("-ASK "));
                let to = redirected.and_then(|words| words.split(' ').nth(1)?.parse().ok());
                match to {
                    Some(to) => (at, asking) = (to, reply.starts_with("-ASK")),
                    None if reply.starts_with('-') => break,
                    None => return Some(reply),
                }
            }
        }
        None
    }
}

/// A client that writes until it is ended.
pub struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Vec<usize>>,
}

fn addresses(servers: &[String]) -> Vec<SocketAddr> {
    let ips = servers.iter().filter_map(|ip| ip.parse::<IpAddr>().ok());
    ips.map(|ip| SocketAddr::new(ip, 6379)).collect()
}

impl Writer {
    /// Starts to write to a cluster.
    pub fn start(servers: &[String]) -> Self {
        let mut known = addresses(servers);
        let stop = Arc::new(AtomicBool::new(false));
        let ended = stop.clone();
        let task = std::thread::spawn(move || {
            let mut client = Client::default();
            let mut acknowledged = Vec::new();
            let mut number = 0;
            while !ended.load(Ordering::Relaxed) {
                let reply = client.at_owner(&known, &format!("SET written-{number} {number}"));
                if reply.as_deref() == Some("+OK") {
                    acknowledged.push(number);
                }
                number += 1;
                // Every write is looked for at the end: 2,000 a second are enough.
                std::thread::sleep(PAUSE);
                // Servers that joined later are asked when the first ones are gone.
                let new: Vec<SocketAddr> = client.open.keys().copied().filter(|at| !known.contains(at)).collect();
                known.extend(new);
            }
            acknowledged
        });
        Self { stop, task }
    }

    /// Ends the writes, and returns how many were acknowledged. Every one of them must be found.
    pub fn end(self, servers: &[String]) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let acknowledged = self.task.join().unwrap();
        let (mut client, servers) = (Client::default(), addresses(servers));
        let lost: Vec<&usize> = acknowledged
            .iter()
            .filter(|number| {
                let found = client.at_owner(&servers, &format!("GET written-{number}"));
                found != Some(number.to_string())
            })
            .collect();
        assert!(
            lost.is_empty(),
            "{} of {} acknowledged writes are lost: {lost:?}",
            lost.len(),
            acknowledged.len()
        );
        acknowledged.len()
    }
}
