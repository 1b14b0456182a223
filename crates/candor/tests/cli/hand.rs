//! The program at hand: run with words, and read.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_candor");

/// More than any word takes, on a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a kubeconfig, in which the program is run.
pub struct Hand {
    pub folder: tempfile::TempDir,
}

/// What the program said.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub fine: bool,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            fine: output.status.success(),
        }
    }
}

impl Said {
    /// What it printed; it must have gone well, and nothing is coloured that goes into a pipe.
    #[track_caller]
    pub fn well(self) -> String {
        assert!(self.fine && self.err.is_empty(), "{self:?}");
        assert!(!self.out.contains('\u{1b}'), "{self:?}");
        self.out
    }

    /// Why it could not be done; it must not have gone well, and printed nothing else.
    #[track_caller]
    pub fn badly(self) -> String {
        assert!(!self.fine && self.out.is_empty(), "{self:?}");
        self.err
    }
}

impl Hand {
    /// With a kubeconfig that is there already, or is written later.
    pub fn with(kubeconfig: Option<&str>) -> Self {
        let hand = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        if let Some(text) = kubeconfig {
            std::fs::write(hand.kubeconfig(), text).unwrap();
        }
        hand
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// The program with these words, not run yet.
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

    /// The same for a shell in a terminal.
    pub fn line(&self, words: &str) -> String {
        format!("KUBECONFIG={} {PROGRAM} {words}", self.kubeconfig().display())
    }

    /// The same for a shell that becomes the program, so that its process id is the program's.
    pub fn becoming(&self, words: &str) -> String {
        format!("KUBECONFIG={} exec {PROGRAM} {words}", self.kubeconfig().display())
    }

    /// What the program says to these words.
    pub async fn say(&self, words: &str) -> Said {
        run(self.command(words)).await
    }

    /// The same, read as JSON.
    pub async fn json(&self, words: &str) -> Value {
        let said = self.say(&format!("{words} -o json")).await.well();
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{words}: {error}: {said}"))
    }

    /// A word that stays until it is told to end.
    pub fn begin(&self, words: &str) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// Runs a command to its end.
pub async fn run(mut command: Command) -> Said {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output
        .unwrap_or_else(|_| panic!("{command:?} did not end in {PATIENCE:?}"))
        .unwrap()
        .into()
}

/// Sends a signal to a program, and reads what it says until its end.
pub async fn end(program: Child, signal: Signal) -> Said {
    let process = program.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    kill_process(process.expect("it lives"), signal).unwrap();
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    output
        .unwrap_or_else(|_| panic!("it did not end in {PATIENCE:?}"))
        .unwrap()
        .into()
}

/// The next line that a program says.
pub async fn next(lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    line.expect("a line in time").unwrap().expect("it goes on")
}

/// What a program says, line by line.
pub fn lines<R: AsyncRead + Unpin>(from: Option<R>) -> Lines<BufReader<R>> {
    BufReader::new(from.expect("a pipe")).lines()
}
