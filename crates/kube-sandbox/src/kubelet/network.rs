//! Addresses that do not respond and pods that cannot reach each other: packets dropped by nftables.
//!
//! The rules live in a table that belongs to one `nft` process (`flags owner`): the kernel removes it when that
//! process ends, and that process ends with this one. So nothing stays on the host, however the sandbox ends.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::Kubelet;
use super::faults::FaultError;
use super::launch::Launcher;

/// Which addresses are cut off from which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cuts {
    dropped: BTreeSet<Ipv4Addr>,
    partitions: Vec<(Vec<Ipv4Addr>, Vec<Ipv4Addr>)>,
}

impl Cuts {
    /// The commands that make the table say exactly this.
    fn commands(&self, table: &str) -> String {
        let mut rules = vec![format!("flush chain inet {table} cut\n")];
        let mut rule = |from: Option<&[Ipv4Addr]>, to: Option<&[Ipv4Addr]>| {
            let set = |side: &str, list: &[Ipv4Addr]| {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                format!(" ip {side} {{ {} }}", list.join(", "))
            };
            let from = from.map(|list| set("saddr", list)).unwrap_or_default();
            let to = to.map(|list| set("daddr", list)).unwrap_or_default();
            rules.push(format!("add rule inet {table} cut{from}{to} drop\n"));
        };
        let dropped: Vec<Ipv4Addr> = self.dropped.iter().copied().collect();
        if !dropped.is_empty() {
            rule(Some(&dropped), None);
            rule(None, Some(&dropped));
        }
        for (one, other) in &self.partitions {
            rule(Some(one), Some(other));
            rule(Some(other), Some(one));
        }
        rules.push(format!("list table inet {table}\n"));
        rules.concat()
    }
}

/// The host's packet filter, as far as this sandbox uses it.
#[derive(Debug, Default)]
pub(super) struct Firewall {
    state: Mutex<(Cuts, Option<Nft>)>,
}

/// A running `nft`.
#[derive(Debug)]
struct Nft {
    _process: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
    table: String,
}

impl Firewall {
    async fn change(
        &self,
        launcher: &Launcher,
        what: &'static str,
        change: impl FnOnce(&mut Cuts),
    ) -> Result<(), FaultError> {
        let mut state = self.state.lock().await;
        let mut cuts = state.0.clone();
        change(&mut cuts);
        if cuts == state.0 {
            return Ok(());
        }
        if state.1.is_none() {
            state.1 = Some(Nft::start(launcher, what).await?);
        }
        let (known, Some(nft)) = &mut *state else { return Ok(()) };
        let commands = cuts.commands(&nft.table);
        nft.run(&commands).await?;
        *known = cuts;
        Ok(())
    }
}

impl Nft {
    async fn start(launcher: &Launcher, what: &'static str) -> Result<Self, FaultError> {
        if !rustix::process::geteuid().is_root() {
            return Err(FaultError::NeedsRoot { what });
        }
        let failed = |message: String| FaultError::Rule {
            command: "nft --interactive".to_owned(),
            message,
        };
        let tool = ["/usr/sbin/nft", "/sbin/nft"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let tool = tool.ok_or_else(|| failed("it is not installed: apt-get install nftables".to_owned()))?;
        let mut process = launcher
            .helper(
                tool,
                &["--interactive"],
                [Stdio::piped(), Stdio::piped(), Stdio::piped()],
            )
            .await
            .map_err(|error| failed(error.to_string()))?;
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(failed("it has no streams".to_owned()));
        };
        let table = format!("kube_sandbox_{}", process.id().unwrap_or_default());
        let mut nft = Self {
            _process: process,
            stdin,
            stdout: BufReader::new(stdout).lines(),
            stderr: BufReader::new(stderr).lines(),
            table,
        };
        let table = &nft.table;
        let begin = format!(
            "add table inet {table} {{ flags owner; }}\nadd chain inet {table} cut {{ type filter hook input priority 0; }}\n\
             list table inet {table}\n"
        );
        nft.run(&begin).await?;
        Ok(nft)
    }

    /// Runs commands of which the last one lists the table: its closing brace shows that all are done.
    async fn run(&mut self, commands: &str) -> Result<(), FaultError> {
        let failed = |message: String| FaultError::Rule {
            command: format!("nft: {commands}"),
            message,
        };
        self.stdin
            .write_all(commands.as_bytes())
            .await
            .map_err(|error| failed(error.to_string()))?;
        let listed = async {
            loop {
                tokio::select! {
                    line = self.stdout.next_line() => match line {
                        Ok(Some(line)) if line == "}" => return Ok(()),
                        Ok(Some(_)) => {}
                        _ => return Err("it ended".to_owned()),
                    },
                    line = self.stderr.next_line() => return Err(line.ok().flatten().unwrap_or_default()),
                }
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(10), listed).await;
        answer
            .unwrap_or_else(|_| Err("no answer within 10 s".to_owned()))
            .map_err(failed)
    }
}

impl Kubelet {
    /// Nothing reaches the pod's address and nothing leaves it: connections to it hang instead of being refused, as
    /// those to a deleted pod do in a real network. It stays so when the pod is deleted. Needs root and nftables.
    pub async fn drop_traffic_of(&self, namespace: &str, pod: &str) -> Result<(), FaultError> {
        let ip = self.fault_target(namespace, pod)?.ip;
        self.cut("dropped traffic of an address", |cuts| {
            cuts.dropped.insert(ip);
        })
        .await
    }

    /// Two sets of pods no longer hear each other; everyone else hears both. What counts is the source address, so
    /// the pods must dial from their own one. Needs root and nftables.
    pub async fn partition(&self, namespace: &str, one: &[&str], other: &[&str]) -> Result<(), FaultError> {
        let addresses = |names: &[&str]| -> Result<Vec<Ipv4Addr>, FaultError> {
            names
                .iter()
                .map(|name| Ok(self.fault_target(namespace, name)?.ip))
                .collect()
        };
        let sides = (addresses(one)?, addresses(other)?);
        self.cut("a partition between pods", |cuts| cuts.partitions.push(sides))
            .await
    }

    /// Ends all partitions and delivers the traffic of all addresses again.
    pub async fn reconnect(&self) -> Result<(), FaultError> {
        self.cut("a packet rule", |cuts| *cuts = Cuts::default()).await
    }

    async fn cut(&self, what: &'static str, change: impl FnOnce(&mut Cuts)) -> Result<(), FaultError> {
        self.context.firewall.change(&self.context.launcher, what, change).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_both_ways_and_dropped_traffic_cuts_every_pod() {
        let ip = |last| Ipv4Addr::new(127, 9, 1, last);
        let cuts = Cuts {
            dropped: BTreeSet::from([ip(9)]),
            partitions: vec![(vec![ip(1), ip(2)], vec![ip(3)])],
        };
        let expected = "flush chain inet t cut\n\
            add rule inet t cut ip saddr { 127.9.1.9 } drop\n\
            add rule inet t cut ip daddr { 127.9.1.9 } drop\n\
            add rule inet t cut ip saddr { 127.9.1.1, 127.9.1.2 } ip daddr { 127.9.1.3 } drop\n\
            add rule inet t cut ip saddr { 127.9.1.3 } ip daddr { 127.9.1.1, 127.9.1.2 } drop\n\
            list table inet t\n";
        assert_eq!(cuts.commands("t"), expected);
    }
}
