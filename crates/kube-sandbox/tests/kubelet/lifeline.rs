//! How a test learns that the last process of a pod has ended: they hold a pipe open, and it ends with them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::bench::shell;

/// Longer than any grace period here.
const PATIENCE: Duration = Duration::from_secs(30);

/// A named pipe; every process that descends from the pod's script has it open for writing.
pub struct Lifeline {
    folder: tempfile::TempDir,
    events: Mutex<UnboundedReceiver<LineEvent>>,
}

#[derive(Debug, PartialEq)]
enum LineEvent {
    TakenUp,
    LetGo,
}

impl Lifeline {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("line");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (sender, events) = unbounded_channel();
        // A separate thread: opening waits for the first writer, and reading for the end of the last.
        std::thread::spawn(move || {
            let mut pipe = File::open(pipe).unwrap();
            let _ = sender.send(LineEvent::TakenUp);
            let _ = pipe.read_to_end(&mut Vec::new());
            let _ = sender.send(LineEvent::LetGo);
        });
        Self {
            folder,
            events: Mutex::new(events),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The spec of a pod with a script that holds the line.
    pub fn held_by(&self, script: &str) -> Value {
        held_by(self.folder(), script)
    }

    /// Waits until a process holds it.
    pub async fn taken_up(&self) {
        self.expect(LineEvent::TakenUp, "the pod did not open the line").await;
    }

    /// Waits until no process holds it any more.
    pub async fn let_go(&self) {
        self.expect(LineEvent::LetGo, "a process lives on").await;
    }

    async fn expect(&self, expected: LineEvent, otherwise: &str) {
        let mut events = self.events.lock().await;
        let next = tokio::time::timeout(PATIENCE, events.recv()).await.expect(otherwise);
        assert_eq!(next, Some(expected));
    }
}

/// The spec of a pod with a script that holds the line in `folder`.
pub fn held_by(folder: &Path, script: &str) -> Value {
    let mut container = shell(&format!("exec 3>/v/line; {script}"));
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    json!({"containers": [container], "volumes": [{"name": "v", "hostPath": {"path": folder}}]})
}
