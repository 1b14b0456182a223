//! A container's running processes, held by the first one.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, ChildStderr, ChildStdout};

/// The container's first process and the shell that waits for it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    handle: Arc<Handle>,
}

/// Signals a container. Safe as long as it is held: a pidfd never refers to another process.
#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    fd: OwnedFd,
}

impl Process {
    pub fn new(child: Child, pid: &str) -> io::Result<Self> {
        let raw: i32 = pid
            .parse()
            .map_err(|_| io::Error::other(format!("`{pid}` is no process id")))?;
        let known = Pid::from_raw(raw).ok_or_else(|| io::Error::other("0 is no process id"))?;
        let fd = pidfd_open(known, PidfdFlags::empty())?;
        let pid = raw.unsigned_abs();
        Ok(Self {
            child,
            handle: Arc::new(Handle { pid, fd }),
        })
    }

    /// What signals it.
    pub fn handle(&self) -> Arc<Handle> {
        self.handle.clone()
    }

    /// The ends of its output; once.
    pub fn output(&mut self) -> Option<(ChildStdout, ChildStderr)> {
        Some((self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Waits for the end and answers the exit code, 128 and the signal when killed.
    pub async fn wait(&mut self) -> i32 {
        self.child.wait().await.map_or(255, exit_code)
    }
}

/// The exit code as a container engine reports it.
pub(super) fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Handle {
    /// The process id on the host.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the first process. One that is gone already is no error.
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.fd, signal) {
            tracing::debug!(pid = self.pid, ?signal, %error, "a container could not be signalled");
        }
    }

    /// Sends a signal to every process of the container.
    pub fn signal_all(&self, signal: Signal) {
        for pid in family(self.pid).into_iter().rev().filter(|pid| *pid != self.pid) {
            let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
            if let Some(error) = known.and_then(|pid| rustix::process::kill_process(pid, signal).err()) {
                tracing::debug!(pid, ?signal, %error, "a process of a container could not be signalled");
            }
        }
        self.signal(signal);
    }
}

/// The processes in the PID namespace of `first`, in no order.
fn family(first: u32) -> Vec<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let Some(own) = namespace(first) else {
        return Vec::new();
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| namespace(*pid).as_ref() == Some(&own)).collect()
}
