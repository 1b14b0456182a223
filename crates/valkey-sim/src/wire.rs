//! The socket: requests in, answers out, as a server's process would while it runs, is frozen, or ends.

use std::net::IpAddr;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use valkey_admin::Reply;
use valkey_admin::decode::{Decoder, Limits};

use crate::commands::Session;
use crate::world::{InjectedReply, Inner, Mode, Undecodable};

/// Accepts until the member ends.
pub(crate) async fn serve(listener: TcpListener, ip: IpAddr, world: Weak<Inner>, mut mode: watch::Receiver<Mode>) {
    let watched = mode.clone();
    loop {
        tokio::select! {
            // It ended, or the world did.
            _ = mode.wait_for(|mode| *mode == Mode::Ended) => return,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    tokio::spawn(converse(stream, ip, world.clone(), watched.clone()));
                }
            }
        }
    }
}

async fn converse(stream: TcpStream, ip: IpAddr, world: Weak<Inner>, mut mode: watch::Receiver<Mode>) {
    let mut ending = mode.clone();
    tokio::select! {
        _ = ending.wait_for(|mode| *mode == Mode::Ended) => {}
        _ = answer(stream, ip, world, &mut mode) => {}
    }
}

async fn answer(
    mut stream: TcpStream,
    ip: IpAddr,
    world: Weak<Inner>,
    mode: &mut watch::Receiver<Mode>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut session = Session::default();
    let mut decoder = Decoder::new(Limits::REPLY);
    let mut outgoing = Vec::new();
    loop {
        if stream.read_buf(decoder.room(512)).await? == 0 {
            return Ok(());
        }
        if mode.wait_for(|mode| *mode == Mode::Running).await.is_err() {
            return Ok(());
        }
        let mut endless = false;
        while let Ok(Some(request)) = decoder.next_reply() {
            decoder.begin(Limits::REPLY);
            let Some(inner) = world.upgrade() else { return Ok(()) };
            inner.commands.fetch_add(1, Ordering::Relaxed);
            let arguments = arguments(&request);
            let mut state = inner.state();
            let (reply, changed) = match state.injected_reply(&arguments) {
                None => state.execute(ip, &mut session, &arguments),
                Some(InjectedReply::Reject(message)) => (Reply::Error(message), false),
                Some(InjectedReply::AcknowledgeOnly) => (Reply::from("OK"), false),
                Some(InjectedReply::NoReply) => continue,
            };
            let garbled = state.garbled.get(&ip).copied();
            drop(state);
            if changed {
                inner.wake_gossip();
            }
            match garbled {
                None => encode(&reply, session.resp3, &mut outgoing),
                Some(Undecodable::Noise) => outgoing.extend(b"@#*! what?\r\n"),
                Some(Undecodable::WrongType) => encode(&Reply::Int(7), session.resp3, &mut outgoing),
                Some(Undecodable::EndlessText) => endless = true,
                Some(Undecodable::MapWithoutItself) => encode(&without_itself(reply), session.resp3, &mut outgoing),
            }
        }
        if endless {
            return write_without_end(stream).await;
        }
        stream.write_all(&outgoing).await?;
        outgoing.clear();
    }
}

/// Announces a reply that no limit allows, and sends it until the client closes the connection.
async fn write_without_end(mut stream: impl tokio::io::AsyncWrite + Unpin) -> std::io::Result<()> {
    stream.write_all(b"$9000000000000\r\n").await?;
    let piece = vec![b'x'; 65536];
    loop {
        stream.write_all(&piece).await?;
    }
}

/// The same map without the line of the node that replied.
fn without_itself(reply: Reply) -> Reply {
    match reply.text("a map") {
        Ok(text) if text.contains("myself") => {
            let others: Vec<&str> = text.lines().filter(|line| !line.contains("myself")).collect();
            Reply::from(others.join("\n").as_str())
        }
        _ => reply,
    }
}

fn arguments(request: &Reply) -> Vec<String> {
    let items = request.items("a request").unwrap_or_default();
    items
        .iter()
        .map(|item| item.text("a request").unwrap_or_default())
        .collect()
}

fn encode(reply: &Reply, resp3: bool, out: &mut Vec<u8>) {
    let head = |out: &mut Vec<u8>, kind: char, number: usize| out.extend(format!("{kind}{number}\r\n").bytes());
    match reply {
        Reply::Nil => out.extend(if resp3 { b"_\r\n".as_slice() } else { b"$-1\r\n" }),
        Reply::Int(number) => out.extend(format!(":{number}\r\n").bytes()),
        Reply::Bytes(bytes) if bytes == b"OK" => out.extend(b"+OK\r\n"),
        Reply::Bytes(bytes) => {
            head(out, '$', bytes.len());
            out.extend(bytes);
            out.extend(b"\r\n");
        }
        Reply::Array(items) => {
            head(out, '*', items.len());
            for item in items {
                encode(item, resp3, out);
            }
        }
        Reply::Map(pairs) => {
            if resp3 {
                head(out, '%', pairs.len());
            } else {
                head(out, '*', pairs.len() * 2);
            }
            for (key, value) in pairs {
                encode(key, resp3, out);
                encode(value, resp3, out);
            }
        }
        Reply::Error(message) => out.extend(format!("-{message}\r\n").bytes()),
    }
}
