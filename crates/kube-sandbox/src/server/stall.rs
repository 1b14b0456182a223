//! Disconnects a client that stops reading, so that the server does not buffer for it without a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

/// A stream that fails its writes when the other side reads nothing for a while.
pub struct StallGuard<S> {
    stream: S,
    patience: Duration,
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
    _place: Option<OwnedSemaphorePermit>,
}

impl<S> StallGuard<S> {
    /// Waits at most `patience` for a write. Holds a place among the allowed connections until it is dropped.
    pub fn new(stream: S, patience: Duration, place: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            stream,
            patience,
            deadline: Box::pin(tokio::time::sleep(patience)),
            waiting: false,
            _place: place,
        }
    }

    fn watched<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = false;
            return outcome;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + self.patience);
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_write_fails_after_the_time_limit_if_the_other_side_does_not_read() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut writer = StallGuard::new(ours, Duration::from_millis(200), None);
        let reader = tokio::spawn(async move {
            let mut taken = [0; 16];
            tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut taken)
                .await
                .unwrap();
            theirs
        });
        writer.write_all(b"1234567890123456").await.unwrap();
        let _open = reader.await.unwrap();
        let error = writer.write_all(b"123456789").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
