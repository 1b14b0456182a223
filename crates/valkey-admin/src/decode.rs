//! Decodes replies (RESP2 and RESP3) from a stream of bytes, incrementally and within limits.
//!
//! A server is not trusted: `spec.image` can name any program, and one operator serves many tenants. So every byte is
//! decoded once, in whatever chunks it arrives, and announced lengths are checked against the limits before any memory
//! is reserved.

use std::fmt;

use crate::{ParseError, Reply};

/// How many bytes of an error message are retained.
const ERROR_BYTES: usize = 1024;
/// How many items are reserved before they are received.
const RESERVED_ITEMS: usize = 1024;

/// Limits for the replies to one request, all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes on the wire.
    pub bytes: usize,
    /// Items of lists and maps, at all depths.
    pub items: usize,
    /// Levels of lists within lists.
    pub depth: usize,
}

impl Limits {
    /// For the state of one server, which is read often and retained. A map of 1,000 nodes with fragmented slots takes
    /// 0.4 MiB, and a log of 1,000 slot migrations 0.5 MiB.
    pub const STATE: Self = Self {
        bytes: 1024 * 1024,
        items: 64 * 1024,
        depth: 8,
    };
    /// For everything else.
    pub const REPLY: Self = Self {
        bytes: 4 * 1024 * 1024,
        ..Self::STATE
    };
}

/// The limit that a reply exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// [`Limits::bytes`].
    Bytes(usize),
    /// [`Limits::items`].
    Items(usize),
    /// [`Limits::depth`].
    Depth(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) if bytes % (1024 * 1024) == 0 => write!(f, "{} MiB", bytes / (1024 * 1024)),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::Items(items) => write!(f, "{items} items"),
            Self::Depth(depth) => write!(f, "{depth} levels of lists"),
        }
    }
}

/// Why a stream cannot be decoded any further: its connection has to be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The reply is too large.
    #[error("reply above the limit of {0}")]
    TooLarge(Exceeded),
    /// The bytes are not of the protocol.
    #[error(transparent)]
    Malformed(#[from] ParseError),
}

/// Decodes one stream.
///
/// ```
/// # use valkey_admin::{Reply, decode::{Decoder, Limits}};
/// let mut decoder = Decoder::new(Limits::STATE);
/// decoder.feed(b"$2\r\nh");
/// assert_eq!(decoder.next_reply()?, None);
/// decoder.feed(b"i\r\n+OK\r\n");
/// assert_eq!(decoder.next_reply()?, Some(Reply::from("hi")));
/// assert_eq!(decoder.next_reply()?, Some(Reply::from("OK")));
/// # Ok::<(), valkey_admin::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// What is left for the current request.
    left: Limits,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that are decoded.
    decoded: usize,
    /// Bytes of `incoming` that are known to contain no end of a line.
    searched: usize,
    /// Incomplete lists, the outermost first.
    open: Vec<List>,
    bulk: Option<Bulk>,
}

/// A list or map that is still incomplete.
#[derive(Debug)]
struct List {
    is_map: bool,
    missing: usize,
    items: Vec<Reply>,
}

/// A bulk string that is still incomplete.
#[derive(Debug)]
struct Bulk {
    kind: u8,
    length: usize,
    /// The bytes received so far, including the trailing CRLF.
    body: Vec<u8>,
}

impl Decoder {
    /// Creates a decoder without input.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            left: limits,
            incoming: Vec::new(),
            decoded: 0,
            searched: 0,
            open: Vec::new(),
            bulk: None,
        }
    }

    /// Starts a new request with its own limits.
    pub fn begin(&mut self, limits: Limits) {
        (self.limits, self.left) = (limits, limits);
    }

    /// Appends received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// Returns the input buffer with room for `more` bytes, for a reader to append to.
    pub fn room(&mut self, more: usize) -> &mut Vec<u8> {
        self.incoming.reserve(more);
        &mut self.incoming
    }

    /// Whether no byte of a further reply has been received.
    pub fn is_empty(&self) -> bool {
        self.decoded == self.incoming.len() && self.open.is_empty() && self.bulk.is_none()
    }

    /// Returns the next reply, or `None` while it is incomplete.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, DecodeError> {
        let reply = self.decode()?;
        // Decoded bytes are removed only before the next read, not after each of many small replies.
        if reply.is_none() || self.decoded == self.incoming.len() {
            self.incoming.drain(..self.decoded);
            self.searched -= self.decoded;
            self.decoded = 0;
        }
        Ok(reply)
    }

    /// Frees the buffer of a large reply, if it is empty.
    pub fn shrink(&mut self, to: usize) {
        if self.incoming.is_empty() && self.incoming.capacity() > to {
            self.incoming = Vec::new();
        }
    }

    fn decode(&mut self) -> Result<Option<Reply>, DecodeError> {
        loop {
            let Some(mut reply) = self.item()? else {
                return Ok(None);
            };
            // The item may complete its list, and that list the one around it.
            loop {
                let Some(list) = self.open.last_mut() else {
                    return Ok(Some(reply));
                };
                list.items.push(reply);
                list.missing -= 1;
                if list.missing > 0 {
                    break;
                }
                let Some(list) = self.open.pop() else { break };
                reply = list.complete();
            }
        }
    }

    /// Returns the next item that is not a list, or an empty list.
    fn item(&mut self) -> Result<Option<Reply>, DecodeError> {
        loop {
            if self.bulk.is_some() {
                return self.body();
            }
            let Some(line) = self.line()? else { return Ok(None) };
            let line = &self.incoming[line];
            let malformed = || ParseError::new("RESP", "an answer of the protocol", String::from_utf8_lossy(line));
            let (kind, rest) = line.split_first().ok_or_else(malformed)?;
            match kind {
                b'+' | b',' | b'(' => return Ok(Some(Reply::Bytes(rest.to_vec()))),
                b'-' => return Ok(Some(error(rest))),
                b':' => return Ok(Some(Reply::Int(number(rest).ok_or_else(malformed)?))),
                b'#' => return Ok(Some(Reply::Int(i64::from(rest == b"t")))),
                b'_' => return Ok(Some(Reply::Nil)),
                b'$' | b'=' | b'!' => match length(rest).ok_or_else(malformed)? {
                    None => return Ok(Some(Reply::Nil)),
                    Some(length) => {
                        let kind = *kind;
                        self.take_bytes(length.saturating_add(2))?;
                        let body = Vec::new();
                        self.bulk = Some(Bulk { kind, length, body });
                    }
                },
                b'*' | b'~' | b'>' | b'%' => {
                    let is_map = *kind == b'%';
                    match length(rest).ok_or_else(malformed)? {
                        None => return Ok(Some(Reply::Nil)),
                        Some(0) => return Ok(Some(List::new(is_map, 0).complete())),
                        Some(length) => {
                            let missing = if is_map { length.saturating_mul(2) } else { length };
                            self.begin_list(is_map, missing)?;
                        }
                    }
                }
                _ => return Err(malformed().into()),
            }
        }
    }

    fn begin_list(&mut self, is_map: bool, missing: usize) -> Result<(), DecodeError> {
        let left = self.left.items.checked_sub(missing);
        self.left.items = left.ok_or(DecodeError::TooLarge(Exceeded::Items(self.limits.items)))?;
        if self.open.len() >= self.limits.depth {
            return Err(DecodeError::TooLarge(Exceeded::Depth(self.limits.depth)));
        }
        self.open.push(List::new(is_map, missing));
        Ok(())
    }

    /// Returns the position of the next line, without its CRLF.
    fn line(&mut self) -> Result<Option<std::ops::Range<usize>>, DecodeError> {
        let begin = self.decoded;
        let from = self.searched.max(begin);
        let Some(found) = self.incoming[from..].windows(2).position(|pair| pair == b"\r\n") else {
            // The last byte may be the CR of a CRLF.
            self.searched = from.max(self.incoming.len().saturating_sub(1));
            if self.incoming.len() - begin > self.left.bytes {
                return Err(self.too_many_bytes());
            }
            return Ok(None);
        };
        let end = from + found;
        self.take_bytes(end + 2 - begin)?;
        self.decoded = end + 2;
        self.searched = self.decoded;
        Ok(Some(begin..end))
    }

    /// Moves received bytes into the current bulk string.
    fn body(&mut self) -> Result<Option<Reply>, DecodeError> {
        let Some(bulk) = &mut self.bulk else { return Ok(None) };
        let arrived = &self.incoming[self.decoded..];
        let taken = arrived.len().min(bulk.length + 2 - bulk.body.len());
        bulk.body.extend_from_slice(&arrived[..taken]);
        self.decoded += taken;
        self.searched = self.searched.max(self.decoded);
        if bulk.body.len() < bulk.length + 2 {
            return Ok(None);
        }
        let Some(Bulk { kind, mut body, .. }) = self.bulk.take() else {
            return Ok(None);
        };
        if !body.ends_with(b"\r\n") {
            return Err(ParseError::new("RESP", "the end of a text", "other bytes").into());
        }
        body.truncate(body.len() - 2);
        Ok(Some(match kind {
            b'!' => error(&body),
            // A verbatim string starts with `txt:` or `mkd:`.
            b'=' => Reply::Bytes(body.get(4..).unwrap_or_default().to_vec()),
            _ => {
                body.shrink_to_fit();
                Reply::Bytes(body)
            }
        }))
    }

    fn take_bytes(&mut self, count: usize) -> Result<(), DecodeError> {
        let left = self.left.bytes.checked_sub(count);
        self.left.bytes = left.ok_or_else(|| self.too_many_bytes())?;
        Ok(())
    }

    fn too_many_bytes(&self) -> DecodeError {
        DecodeError::TooLarge(Exceeded::Bytes(self.limits.bytes))
    }
}

impl List {
    fn new(is_map: bool, missing: usize) -> Self {
        Self {
            is_map,
            missing,
            items: Vec::with_capacity(missing.min(RESERVED_ITEMS)),
        }
    }

    fn complete(self) -> Reply {
        if !self.is_map {
            return Reply::Array(self.items);
        }
        let mut items = self.items.into_iter();
        Reply::Map(std::iter::from_fn(|| items.next().zip(items.next())).collect())
    }
}

fn error(message: &[u8]) -> Reply {
    let retained = &message[..message.len().min(ERROR_BYTES)];
    Reply::Error(String::from_utf8_lossy(retained).into_owned())
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses a length; -1 means null.
#[allow(clippy::option_option)] // an invalid length and null are different
fn length(digits: &[u8]) -> Option<Option<usize>> {
    match number(digits)? {
        -1 => Some(None),
        length => usize::try_from(length).ok().map(Some),
    }
}
