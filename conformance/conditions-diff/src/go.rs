//! The Go responder as a child process: lines out, lines back.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running responder. It ends when its input closes, which dropping does.
pub struct Go {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
    /// What answers: module names and versions, as the responder's build states them.
    pub versions: BTreeMap<String, String>,
}

impl Go {
    /// Starts the responder and reads its first line, the versions.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the responder has no pipes"));
        };
        let mut go = Self {
            child,
            to: Some(BufWriter::new(to)),
            from: BufReader::new(from),
            versions: BTreeMap::new(),
        };
        go.versions = serde_json::from_value(read_answer(&mut go.from)?)?;
        Ok(go)
    }

    /// Asks all at once and returns the answers in the same order. Writing has its own thread: a responder that
    /// waits until its output is read would otherwise never read the rest of its input.
    pub fn ask_all(&mut self, cases: &[String]) -> io::Result<Vec<Value>> {
        let Some(to) = self.to.as_mut() else {
            return Err(io::Error::other("the responder's input is closed"));
        };
        let from = &mut self.from;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for case in cases {
                    to.write_all(case.as_bytes())?;
                    to.write_all(b"\n")?;
                }
                to.flush()
            });
            let answers = cases.iter().map(|_| read_answer(from)).collect::<io::Result<Vec<_>>>();
            match writer.join() {
                Ok(written) => written.and(answers),
                Err(_) => Err(io::Error::other("writing to the responder failed")),
            }
        })
    }

    /// Asks one case.
    pub fn ask(&mut self, case: &str) -> io::Result<Value> {
        let mut answers = self.ask_all(&[case.to_owned()])?;
        answers
            .pop()
            .ok_or_else(|| io::Error::other("the responder gave no answer"))
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

fn read_answer(from: &mut impl BufRead) -> io::Result<Value> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::Error::other("the responder ended early"));
    }
    Ok(serde_json::from_str(&line)?)
}
