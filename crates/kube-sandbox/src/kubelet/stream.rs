//! kubectl's streams over a WebSocket: the protocols `v4.channel.k8s.io` and `v5.channel.k8s.io`.
//!
//! Every message begins with the number of its channel. When the process has ended, a `Status` on the error channel
//! says how; a non-zero exit code is a failure with the cause `ExitCode`.

use std::io;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::ExecProcess;
use crate::status::ApiError;

/// What the server offers in `Sec-WebSocket-Protocol`, the best first.
pub const PROTOCOLS: [&str; 3] = ["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Version 5: the client closes a channel.
const CLOSE: u8 = 255;

/// How much of a process's output goes into one message.
const CHUNK: usize = 32 << 10;

#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width")]
    width: u16,
    #[serde(rename = "Height")]
    height: u16,
}

/// Carries a process's streams over an upgraded connection until the process ends or the client leaves.
/// A process that could not start is told on the error channel, as a real kubelet does.
pub async fn serve_exec(socket: WebSocket, process: Result<ExecProcess, ApiError>) {
    let (sink, source) = socket.split();
    let (messages, outbox) = mpsc::channel(16);
    let sending = tokio::spawn(send(sink, outbox));
    let status = match process {
        Ok(process) => carry(process, source, messages.clone()).await,
        Err(error) => Some(error.to_value()),
    };
    if let Some(status) = status {
        let _ = messages.send(framed(ERROR, status.to_string().as_bytes())).await;
    }
    drop(messages);
    let _ = sending.await;
}

/// The last words; `None` when the client has left, which ends the process.
async fn carry(process: ExecProcess, source: SplitStream<WebSocket>, messages: mpsc::Sender<Message>) -> Option<Value> {
    let stdout = pump(STDOUT, process.stdout, messages.clone());
    let stderr = async {
        match process.stderr {
            Some(stderr) => pump(STDERR, stderr, messages.clone()).await,
            None => Ok(()),
        }
    };
    let work = async {
        let (code, out, err) = tokio::join!(process.exit, stdout, stderr);
        (code, out.and(err))
    };
    let input = receive(source, process.stdin, process.resize);
    tokio::select! {
        (code, outcome) = work => outcome.is_ok().then(|| verdict(code)),
        () = input => None,
    }
}

/// `Success`, or the exit code in the form kubectl looks for.
fn verdict(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

fn framed(channel: u8, bytes: &[u8]) -> Message {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    Message::Binary(Bytes::from(message))
}

async fn send(mut sink: SplitSink<WebSocket, Message>, mut outbox: mpsc::Receiver<Message>) {
    while let Some(message) = outbox.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let normal = CloseFrame {
        code: 1000,
        reason: "".into(),
    };
    let _ = sink.send(Message::Close(Some(normal))).await;
}

async fn pump(channel: u8, mut from: impl AsyncRead + Unpin, messages: mpsc::Sender<Message>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let message = framed(channel, &buffer[..count]);
        messages
            .send(message)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    }
}

/// Takes the client's messages until it leaves.
async fn receive(
    mut source: SplitStream<WebSocket>,
    mut stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    resize: Option<mpsc::Sender<(u16, u16)>>,
) {
    while let Some(Ok(message)) = source.next().await {
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        let Some((channel, data)) = data.split_first() else {
            continue;
        };
        match *channel {
            STDIN => {
                if let Some(open) = stdin.as_mut() {
                    let written = async { open.write_all(data).await.and(open.flush().await) };
                    if written.await.is_err() {
                        stdin = None;
                    }
                }
            }
            CLOSE if data.first() == Some(&STDIN) => stdin = None,
            RESIZE => {
                let size = serde_json::from_slice::<Size>(data);
                if let (Ok(size), Some(resize)) = (size, &resize) {
                    let _ = resize.try_send((size.width, size.height));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_finds_the_exit_code_in_the_causes() {
        assert_eq!(verdict(0)["status"], "Success");
        assert_eq!(
            verdict(3)["details"]["causes"][0],
            json!({"reason": "ExitCode", "message": "3"})
        );
    }
}
