//! Runs the CLI with arguments and reads its output.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};

/// The path of the CLI.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_candor");

/// Longer than any command takes on a busy host.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a kubeconfig, in which the CLI runs.
pub struct Cli {
    pub folder: tempfile::TempDir,
}

/// The output of the CLI.
#[derive(Debug)]
pub struct Printed {
    pub out: String,
    pub err: String,
    pub fine: bool,
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            fine: output.status.success(),
        }
    }
}

impl Printed {
    /// The standard output. The command must have succeeded, and output to a pipe must have no colours.
    #[track_caller]
    pub fn well(self) -> String {
        assert!(self.fine && self.err.is_empty(), "{self:?}");
        assert!(!self.out.contains('\u{1b}'), "{self:?}");
        self.out
    }

    /// The error output. The command must have failed and printed nothing else.
    #[track_caller]
    pub fn badly(self) -> String {
        assert!(!self.fine && self.out.is_empty(), "{self:?}");
        self.err
    }
}

impl Cli {
    /// With a kubeconfig that exists already or is written later.
    pub fn with(kubeconfig: Option<&str>) -> Self {
        let user = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        if let Some(text) = kubeconfig {
            std::fs::write(user.kubeconfig(), text).unwrap();
        }
        user
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// The CLI with these arguments, not started yet.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words.split_whitespace())
            .env("KUBECONFIG", self.kubeconfig())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// The same as a shell line for a terminal.
    pub fn line(&self, words: &str) -> String {
        format!("KUBECONFIG={} {PROGRAM} {words}", self.kubeconfig().display())
    }

    /// The same with `exec`, so that the process id of the shell becomes that of the CLI.
    pub fn becoming(&self, words: &str) -> String {
        format!("KUBECONFIG={} exec {PROGRAM} {words}", self.kubeconfig().display())
    }

    /// Runs the CLI with these arguments.
    pub async fn run(&self, words: &str) -> Printed {
        run(self.command(words)).await
    }

    /// The same, parsed as JSON.
    pub async fn json(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} -o json")).await.well();
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{words}: {error}: {output}"))
    }

    /// Starts a command that runs until it gets a signal.
    pub fn begin(&self, words: &str) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// Runs a command to completion.
pub async fn run(mut command: Command) -> Printed {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output
        .unwrap_or_else(|_| panic!("{command:?} did not end in {PATIENCE:?}"))
        .unwrap()
        .into()
}

/// Sends a signal to a program and reads its output until it exits.
pub async fn end(program: Child, signal: Signal) -> Printed {
    let process = program.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    kill_process(process.expect("it lives"), signal).unwrap();
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    output
        .unwrap_or_else(|_| panic!("it did not end in {PATIENCE:?}"))
        .unwrap()
        .into()
}

/// The next line of a program's output.
pub async fn next(lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    line.expect("a line in time").unwrap().expect("it goes on")
}

/// A program's output, line by line.
pub fn lines<R: AsyncRead + Unpin>(from: Option<R>) -> Lines<BufReader<R>> {
    BufReader::new(from.expect("a pipe")).lines()
}
