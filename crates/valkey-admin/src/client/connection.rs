//! One connection that many concurrent requests share (pipelining): replies come in the order of the requests.

use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::wire::{Stream, Wire};
use crate::Reply;
use crate::decode::{DecodeError, Decoder, Limits};

/// Size of one read.
const ROOM: usize = 16 * 1024;
/// Waiting requests are written together, up to about this many bytes.
const WRITTEN_TOGETHER: usize = 64 * 1024;

/// Why a request has no replies.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection ended.
    Closed,
    /// The server sent an undecodable reply; the connection is closed.
    Undecodable(DecodeError),
}

type Answer = oneshot::Sender<Result<Vec<Reply>, Broken>>;

struct Request {
    packed: Vec<u8>,
    expected: Expected,
}

struct Expected {
    replies: usize,
    limits: Limits,
    answer: Answer,
}

/// A handle of the connection, which is closed when the last handle is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    requests: UnboundedSender<Request>,
    _task: Arc<Task>,
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    /// Shares an open connection.
    pub(super) fn over(wire: Wire) -> Self {
        let (stream, decoder) = wire.into_parts();
        let (requests, received) = unbounded_channel();
        let task = tokio::spawn(async move {
            let (read, write) = tokio::io::split(stream);
            let (sent, expected) = unbounded_channel();
            // When either ends, both end, and pending requests return `Broken::Closed`.
            tokio::select! {
                () = send(write, received, sent) => {}
                () = receive(read, decoder, expected) => {}
            }
        });
        Self {
            requests,
            _task: Arc::new(Task(task.abort_handle())),
        }
    }

    /// Sends packed commands and waits for their replies, which together must be within the limits.
    pub(super) async fn request(&self, packed: Vec<u8>, replies: usize, limits: Limits) -> Result<Vec<Reply>, Broken> {
        let (answer, received) = oneshot::channel();
        let expected = Expected {
            replies,
            limits,
            answer,
        };
        let request = Request { packed, expected };
        self.requests.send(request).map_err(|_| Broken::Closed)?;
        received.await.unwrap_or(Err(Broken::Closed))
    }
}

async fn send(
    mut write: WriteHalf<Box<dyn Stream>>,
    mut requests: UnboundedReceiver<Request>,
    sent: UnboundedSender<Expected>,
) {
    let mut outgoing = Vec::new();
    while let Some(first) = requests.recv().await {
        let mut next = Some(first);
        while let Some(Request { packed, expected }) = next.take() {
            outgoing.extend_from_slice(&packed);
            // Registered before it is written, so that its reply is expected.
            if sent.send(expected).is_err() {
                return;
            }
            if outgoing.len() < WRITTEN_TOGETHER {
                next = requests.try_recv().ok();
            }
        }
        if write.write_all(&outgoing).await.is_err() || write.flush().await.is_err() {
            return;
        }
        outgoing.clear();
        outgoing.shrink_to(WRITTEN_TOGETHER);
    }
}

async fn receive(mut read: ReadHalf<Box<dyn Stream>>, mut decoder: Decoder, mut expected: UnboundedReceiver<Expected>) {
    loop {
        let next = tokio::select! {
            biased;
            next = expected.recv() => next,
            // While no reply is expected, this is the end of the connection or an unrequested reply.
            _ = read.read_buf(decoder.room(1)) => expected.try_recv().ok(),
        };
        let Some(Expected {
            replies,
            limits,
            answer,
        }) = next
        else {
            return;
        };
        decoder.begin(limits);
        let received = replies_to(&mut read, &mut decoder, replies).await;
        let ended = received.is_err();
        let _ = answer.send(received);
        if ended {
            return;
        }
        decoder.shrink(4 * ROOM);
    }
}

async fn replies_to(
    read: &mut ReadHalf<Box<dyn Stream>>,
    decoder: &mut Decoder,
    count: usize,
) -> Result<Vec<Reply>, Broken> {
    let mut replies = Vec::with_capacity(count);
    while replies.len() < count {
        match decoder.next_reply().map_err(Broken::Undecodable)? {
            Some(reply) => replies.push(reply),
            None => match read.read_buf(decoder.room(ROOM)).await {
                Ok(0) | Err(_) => return Err(Broken::Closed),
                Ok(_) => {}
            },
        }
    }
    Ok(replies)
}
