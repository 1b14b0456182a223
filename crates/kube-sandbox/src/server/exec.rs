//! Exec: a process in a container behind a WebSocket with one channel per stream.

use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::request::Parts;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::api::{Api, Call};
use super::pods::chosen_container;
use super::respond::Reply;
use crate::pod_access::{ContainerRef, ExecProcess, ExecRequest};
use crate::status::ApiError;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Only in v5: the next byte names the channel that ends.
const CLOSE: u8 = 255;

impl Api {
    pub(super) async fn exec(&self, call: &Call, mut parts: Parts) -> Result<Reply, ApiError> {
        let pod = self.find(call)?;
        let container = chosen_container(call, pod.value())?;
        let command: Vec<String> = call.query.all("command").map(str::to_owned).collect();
        if command.is_empty() {
            return Err(ApiError::bad_request(
                "you must specify at least 1 command for the container",
            ));
        }
        let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &())
            .await
            .map_err(|_| ApiError::bad_request("Upgrade request required"))?
            .protocols(["v5.channel.k8s.io", "v4.channel.k8s.io"]);
        let request = ExecRequest {
            command,
            stdin: call.query.flag("stdin"),
            tty: call.query.flag("tty"),
        };
        let of = ContainerRef {
            namespace: call.info.namespace.clone(),
            pod: call.info.name.clone(),
            container: Some(container),
        };
        let process = self.kubelet()?.exec(of, request).await?;
        Ok(upgrade
            .on_upgrade(move |socket| session(socket, process))
            .into_response())
    }
}

/// Carries bytes both ways until the process ends or the client goes.
async fn session(socket: WebSocket, process: ExecProcess) {
    let (sink, source) = socket.split();
    let (out, lines) = mpsc::channel::<Message>(16);
    let writer = tokio::spawn(write(sink, lines));
    let mut reader = tokio::spawn(read(source, process.stdin, process.resize));
    let stderr = process.stderr.map(|s| tokio::spawn(copy(STDERR, s, out.clone())));
    let stdout = tokio::spawn(copy(STDOUT, process.stdout, out.clone()));
    tokio::select! {
        code = async {
            let code = process.exit.await;
            let _ = stdout.await;
            if let Some(stderr) = stderr {
                let _ = stderr.await;
            }
            code
        } => {
            let _ = out.send(frame(ERROR, outcome(code).to_string().as_bytes())).await;
            // Without a code kubectl takes the end for an accident.
            let normal = CloseFrame { code: close_code::NORMAL, reason: "".into() };
            let _ = out.send(Message::Close(Some(normal))).await;
        }
        _ = &mut reader => {}
        () = out.closed() => {}
    }
    drop(out);
    reader.abort();
    let _ = writer.await;
}

fn frame(channel: u8, bytes: &[u8]) -> Message {
    let mut data = Vec::with_capacity(bytes.len() + 1);
    data.push(channel);
    data.extend_from_slice(bytes);
    Message::Binary(Bytes::from(data))
}

async fn write(mut sink: SplitSink<WebSocket, Message>, mut lines: mpsc::Receiver<Message>) {
    while let Some(message) = lines.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}

async fn copy(channel: u8, mut from: Box<dyn AsyncRead + Send + Unpin>, to: mpsc::Sender<Message>) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(read) = from.read(&mut buffer).await {
        if read == 0 || to.send(frame(channel, &buffer[..read])).await.is_err() {
            return;
        }
    }
}

async fn read(
    mut source: SplitStream<WebSocket>,
    mut stdin: Option<Box<dyn tokio::io::AsyncWrite + Send + Unpin>>,
    resize: Option<mpsc::Sender<(u16, u16)>>,
) {
    while let Some(Ok(message)) = source.next().await {
        let data = match message {
            Message::Binary(data) => data,
            Message::Close(_) => return,
            _ => continue,
        };
        match data.split_first() {
            Some((&STDIN, bytes)) => {
                let Some(writer) = stdin.as_mut() else {
                    continue;
                };
                if writer.write_all(bytes).await.is_err() || writer.flush().await.is_err() {
                    stdin = None;
                }
            }
            Some((&RESIZE, bytes)) => {
                let size: Value = serde_json::from_slice(bytes).unwrap_or_default();
                let side = |name: &str| size[name].as_u64().and_then(|n| u16::try_from(n).ok());
                if let (Some(resize), Some(width), Some(height)) = (&resize, side("Width"), side("Height")) {
                    let _ = resize.send((width, height)).await;
                }
            }
            Some((&CLOSE, [STDIN])) => stdin = None,
            _ => {}
        }
    }
}

/// How the process ended, as the error channel says it.
fn outcome(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}
