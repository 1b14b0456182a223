//! Container logs: written line by line with their time, read back as `kubectl logs` asks.
//!
//! Each start of a container has a separate file, so that `--previous` is the file before. A file that grows beyond
//! [`ROTATE_AT`] is moved aside once and begun anew: what is kept of one start is at most twice that much.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

use super::LogOptions;

/// The size at which a log file is begun anew.
const ROTATE_AT: u64 = 10 << 20;

/// Longer lines are cut into parts, as a container engine does.
const LONGEST_LINE: usize = 16 << 10;

/// The log of one start of a container.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    out: Mutex<Out>,
    grown: watch::Sender<Growth>,
}

#[derive(Debug)]
struct Out {
    file: File,
    size: u64,
}

/// What followers wait for.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    written: u64,
    rotations: u64,
    ended: bool,
}

impl Log {
    /// Begins a log in a new file.
    pub async fn create(path: PathBuf) -> io::Result<Arc<Self>> {
        let file = File::create(&path).await?;
        Ok(Arc::new(Self {
            path,
            out: Mutex::new(Out { file, size: 0 }),
            grown: watch::Sender::default(),
        }))
    }

    /// Copies an output stream until it ends. `name` is `stdout` or `stderr`.
    pub async fn copy(self: Arc<Self>, name: &'static str, from: impl AsyncRead + Unpin) {
        let mut from = BufReader::with_capacity(LONGEST_LINE, from);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut from).take(LONGEST_LINE as u64).read_until(b'\n', &mut line).await;
            if !matches!(read, Ok(1..)) {
                return;
            }
            if let Err(error) = self.append(name, &line).await {
                tracing::warn!(file = %self.path.display(), %error, "a container's log could not be written");
                return;
            }
        }
    }

    async fn append(&self, stream: &str, line: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock().await;
        let whole = line.ends_with(b"\n");
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let mut entry = format!("{} {stream} {} ", now(), if whole { "F" } else { "P" }).into_bytes();
        entry.extend_from_slice(text);
        entry.push(b'\n');
        let mut rotated = 0;
        if out.size + entry.len() as u64 > ROTATE_AT {
            tokio::fs::rename(&self.path, aside(&self.path)).await?;
            *out = Out {
                file: File::create(&self.path).await?,
                size: 0,
            };
            rotated = 1;
        }
        out.file.write_all(&entry).await?;
        out.file.flush().await?;
        out.size += entry.len() as u64;
        let written = out.size;
        drop(out);
        self.grown.send_modify(|growth| {
            growth.written = written;
            growth.rotations += rotated;
        });
        Ok(())
    }

    /// No more is to come: followers end.
    pub fn end(&self) {
        self.grown.send_modify(|growth| growth.ended = true);
    }

    /// The log as asked for.
    pub async fn read(self: Arc<Self>, options: &LogOptions) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
        let mut growth = self.grown.subscribe();
        let seen = *growth.borrow_and_update();
        let since = options.since_seconds.map(|ago| {
            let start = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(ago);
            format!("{start:.9}")
        });
        let mut lines = Lines::new(options.timestamps, since);
        let mut first = Vec::new();
        for path in [aside(&self.path), self.path.clone()] {
            match tokio::fs::read(&path).await {
                Ok(bytes) if path == self.path => {
                    let upto = usize::try_from(seen.written).unwrap_or(usize::MAX).min(bytes.len());
                    lines.push(&bytes[..upto], &mut first);
                }
                Ok(bytes) => lines.push(&bytes, &mut first),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(count) = options.tail_lines {
            let from = first.len().saturating_sub(count);
            first.drain(..from);
        }
        let limit = options.limit_bytes.unwrap_or(usize::MAX);
        let start = futures::stream::iter([Ok(Bytes::from(first.concat()))]);
        if !options.follow {
            return Ok(limited(start.boxed(), limit));
        }
        let tail = Tail {
            log: self,
            growth,
            offset: seen.written,
            rotations: seen.rotations,
            lines,
        };
        let more = futures::stream::unfold(tail, |mut tail| async { Some((tail.next().await?, tail)) });
        Ok(limited(start.chain(more).boxed(), limit))
    }
}

impl Log {
    /// The last lines as text, of at most so many bytes.
    pub async fn tail(self: Arc<Self>, lines: usize, bytes: usize) -> io::Result<String> {
        let options = LogOptions {
            tail_lines: Some(lines),
            ..LogOptions::default()
        };
        let parts: Vec<Bytes> = self
            .read(&options)
            .await?
            .filter_map(|part| async { part.ok() })
            .collect()
            .await;
        let all = parts.concat();
        let from = all.len().saturating_sub(bytes);
        Ok(String::from_utf8_lossy(&all[from..]).into_owned())
    }
}

/// A follower's place in the file.
struct Tail {
    log: Arc<Log>,
    growth: watch::Receiver<Growth>,
    offset: u64,
    rotations: u64,
    lines: Lines,
}

impl Tail {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let seen = *self.growth.borrow_and_update();
            if seen.rotations != self.rotations {
                let rest = self.read(&aside(&self.log.path), u64::MAX).await;
                (self.rotations, self.offset) = (seen.rotations, 0);
                return Some(rest);
            }
            if seen.written > self.offset {
                let path = self.log.path.clone();
                return Some(self.read(&path, seen.written).await);
            }
            if seen.ended {
                return None;
            }
            self.growth.changed().await.ok()?;
        }
    }

    async fn read(&mut self, path: &Path, upto: u64) -> io::Result<Bytes> {
        let mut file = File::open(path).await?;
        file.seek(SeekFrom::Start(self.offset)).await?;
        let mut bytes = Vec::new();
        file.take(upto.saturating_sub(self.offset))
            .read_to_end(&mut bytes)
            .await?;
        self.offset += bytes.len() as u64;
        let mut out = Vec::new();
        self.lines.push(&bytes, &mut out);
        Ok(Bytes::from(out.concat()))
    }
}

/// Turns entries of the file into what a reader sees.
struct Lines {
    timestamps: bool,
    since: Option<String>,
    within_line: bool,
}

impl Lines {
    fn new(timestamps: bool, since: Option<String>) -> Self {
        Self {
            timestamps,
            since,
            within_line: false,
        }
    }

    /// Adds the lines of `bytes`, one element each; parts of a cut line are joined.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        for entry in bytes.split(|byte| *byte == b'\n').filter(|entry| !entry.is_empty()) {
            let mut fields = entry.splitn(4, |byte| *byte == b' ');
            let (Some(time), Some(_), Some(flag), Some(text)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if self.since.as_ref().is_some_and(|since| time < since.as_bytes()) {
                continue;
            }
            let mut line = Vec::with_capacity(entry.len());
            if self.timestamps && !self.within_line {
                line.extend_from_slice(time);
                line.push(b' ');
            }
            line.extend_from_slice(text);
            if flag == b"F" {
                line.push(b'\n');
            }
            match out.last_mut().filter(|_| self.within_line) {
                Some(begun) => begun.extend_from_slice(&line),
                None => out.push(line),
            }
            self.within_line = flag != b"F";
        }
    }
}

/// Cuts a stream after so many bytes.
fn limited(stream: BoxStream<'static, io::Result<Bytes>>, limit: usize) -> BoxStream<'static, io::Result<Bytes>> {
    if limit == usize::MAX {
        return stream;
    }
    let cut = stream.scan(limit, |left, item| {
        let next = match item {
            _ if *left == 0 => None,
            Ok(bytes) => {
                let part = bytes.slice(..bytes.len().min(*left));
                *left -= part.len();
                Some(Ok(part))
            }
            Err(error) => Some(Err(error)),
        };
        futures::future::ready(next)
    });
    cut.boxed()
}

/// The one moved aside.
fn aside(path: &Path) -> PathBuf {
    path.with_extension("old.log")
}

/// Now, with all nine digits, so that times compare as texts.
fn now() -> String {
    format!("{:.9}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn filled(lines: &[&str]) -> (tempfile::TempDir, Arc<Log>) {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(folder.path().join("0.log")).await.unwrap();
        for line in lines {
            log.append("stdout", line.as_bytes()).await.unwrap();
        }
        (folder, log)
    }

    async fn text(log: &Arc<Log>, options: LogOptions) -> String {
        let stream = log.clone().read(&options).await.unwrap();
        let parts: Vec<Bytes> = stream.map(Result::unwrap).collect().await;
        String::from_utf8(parts.concat()).unwrap()
    }

    #[tokio::test]
    async fn tail_limit_and_timestamps_shape_what_is_read() {
        let (_folder, log) = filled(&["one\n", "two\n", "", "thr", "ee\n", "four"]).await;
        assert_eq!(text(&log, LogOptions::default()).await, "one\ntwo\nthree\nfour");
        let tail = |tail_lines| LogOptions {
            tail_lines,
            ..LogOptions::default()
        };
        assert_eq!(text(&log, tail(Some(2))).await, "three\nfour");
        assert_eq!(text(&log, tail(Some(0))).await, "");
        let limited = LogOptions {
            limit_bytes: Some(5),
            ..LogOptions::default()
        };
        assert_eq!(text(&log, limited).await, "one\nt");
        let stamped = LogOptions {
            timestamps: true,
            tail_lines: Some(1),
            ..LogOptions::default()
        };
        let line = text(&log, stamped).await;
        let (time, rest) = line.split_once(' ').unwrap();
        assert_eq!(rest, "four");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[tokio::test]
    async fn a_follower_sees_what_comes_later_and_ends_with_the_container() {
        let (_folder, log) = filled(&["before\n"]).await;
        let follow = LogOptions {
            follow: true,
            ..LogOptions::default()
        };
        let mut stream = log.clone().read(&follow).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "before\n");
        log.append("stderr", b"after\n").await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "after\n");
        log.end();
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_log_that_grows_without_end_is_kept_to_two_files() {
        let (folder, log) = filled(&[]).await;
        let line = vec![b'x'; LONGEST_LINE];
        for _ in 0..1500 {
            log.append("stdout", &line).await.unwrap();
        }
        let kept: u64 = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|f| f.unwrap().metadata().unwrap().len())
            .sum();
        assert!(kept <= 2 * ROTATE_AT, "{kept} bytes are kept");
    }

    #[tokio::test]
    async fn younger_than_skips_older_lines() {
        let (_folder, log) = filled(&["now\n"]).await;
        let since = |ago| LogOptions {
            since_seconds: Some(ago),
            ..LogOptions::default()
        };
        assert_eq!(text(&log, since(60)).await, "now\n");
        assert_eq!(text(&log, since(-60)).await, "");
    }
}
