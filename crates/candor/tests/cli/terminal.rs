//! A real terminal: tmux on a private socket.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A terminal with one program in it.
pub struct Terminal {
    /// A private folder that must exist until tmux has exited.
    folder: tempfile::TempDir,
}

impl Terminal {
    /// Runs a shell line in a folder, in a terminal of this size.
    pub fn start(folder: &Path, size: (u16, u16), line: &str) -> Self {
        let there = Command::new("tmux").arg("-V").output();
        assert!(
            there.is_ok(),
            "tmux is missing: run `make setup` once, or install Debian's tmux"
        );
        let terminal = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let (width, height) = (size.0.to_string(), size.1.to_string());
        // No tmux status line, and the last screen stays when the program exits.
        let words = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "-c",
            &folder.display().to_string(),
            line,
        ];
        terminal.tmux(&words);
        terminal.tmux(&["set-option", "-g", "status", "off"]);
        terminal.tmux(&["resize-window", "-x", &width, "-y", &height]);
        terminal
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux")
    }

    /// Runs a tmux command and returns its output.
    pub fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .args(words)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "tmux {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses a key, by its tmux name.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Resizes the terminal.
    pub fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// The whole scrollback, without line wrapping.
    pub fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// The visible text.
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with colours.
    pub fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the visible text meets a predicate.
    pub async fn until(&self, what: &str, so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if so(&text) {
                return text;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "not {what} in 30 s:\n{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .arg("kill-server")
            .output();
    }
}
