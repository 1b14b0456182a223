//! The cost of the web page: how long a viewer waits for the first picture, and what an open page costs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tokio::process::Child;

use crate::desk::Desk;
use crate::runner::{lines, next};
use crate::{LOOKED, RUNS, crowd, row, spent};

/// The page, as it is served for the crowd.
pub async fn measure(desk: &Desk) {
    let mut page = desk.begin("web --listen 127.0.0.1:0 -n crowd");
    let line = next(&mut lines(page.stdout.take())).await;
    let address = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("http://"))
        .expect("it serves");
    let address = address.trim_end_matches('/').to_owned();
    let all = |page: &str| page.contains("all slots served") && page.contains("m-19-2");
    first(&address, "/c/crowd/vkc/big", "first picture, 60 members", 300, all);
    let all = |page: &str| page.matches("class=\"row\"").count() == crowd::CLUSTERS;
    first(&address, "/", "first picture, 200 clusters", 1000, all);
    watched(&page, &address).await;
    page.kill().await.expect("it ends");
}

fn get(address: &str, path: &str, accept: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    stream
}

/// Measures how long a viewer waits for a whole page.
fn first(address: &str, path: &str, what: &str, promised: u128, whole: impl Fn(&str) -> bool) {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let mut text = String::new();
        get(address, path, "text/html")
            .read_to_string(&mut text)
            .expect("it answers");
        times.push(begun.elapsed().as_millis());
        assert!(whole(&text), "{text}");
    }
    times.sort_unstable();
    let (median, worst) = (times[RUNS / 2], times[RUNS - 1]);
    let measured = format!("{median} ms (the slowest of {RUNS}: {worst} ms)");
    row(
        &format!("candor web, {what}"),
        &format!("{promised} ms"),
        &measured,
        median <= promised,
    );
}

/// Memory and load with one viewer of all clusters.
async fn watched(page: &Child, address: &str) {
    let mut stream = get(address, "/stream", "text/event-stream");
    let viewer = std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        let mut all = 0;
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("a timeout");
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            all += count;
        }
        all
    });
    let process = page.id().expect("it lives").to_string();
    let (before, begun) = (spent(&process), Instant::now());
    tokio::time::sleep(LOOKED).await;
    let load = (spent(&process) - before) / begun.elapsed().as_secs_f64() * 100.0;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("Linux says it");
    let kilobytes: f64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    let megabytes = kilobytes / 1000.0;
    row(
        "candor web, memory, 200 clusters",
        "40 MB",
        &format!("{megabytes:.1} MB"),
        megabytes < 40.0,
    );
    let words = format!("{load:.1} % over {} s", LOOKED.as_secs());
    row(
        "candor web, one viewer, 200 clusters",
        "2 % of a core",
        &words,
        load < 2.0,
    );
    drop(viewer);
}
