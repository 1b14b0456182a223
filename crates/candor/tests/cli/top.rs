//! `candor top` in a real terminal.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::desk::Desk;
use crate::runner::Cli;
use crate::terminal::Terminal;

/// A terminal in which `top` was started. The text before it and the command after it show whether `top` restores the
/// terminal.
fn begin(user: &Cli) -> Terminal {
    let line = format!(
        "echo it stood here; before=$(stty -g); sh -c 'echo $$ >top.pid; {}'; ended=$?; \
         [ \"$before\" = \"$(stty -g)\" ] && echo ended with $ended, clean; exec sleep 600",
        user.becoming("top shop")
    );
    Terminal::start(user.folder.path(), (100, 30), &line)
}

/// Waits until `top` has exited and checks that the terminal is restored.
async fn is_clean(terminal: &Terminal) {
    let ended = terminal
        .until("ended", |text| text.contains("ended with 0, clean"))
        .await;
    assert!(ended.starts_with("it stood here\nended with 0"), "{ended}");
    let state = terminal.tmux(&[
        "display-message",
        "-p",
        "#{alternate_on} #{cursor_flag} #{mouse_any_flag}",
    ]);
    assert_eq!(state.trim(), "0 1 0", "the first screen, a cursor, no mouse");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_lives_in_a_real_terminal_and_obeys_its_keys() {
    let desk = Desk::set().await;
    desk.ready("shop", json!({"shards": 3, "replicas": 1})).await;
    let terminal = begin(&desk);
    let first = terminal
        .until("there", |text| text.contains("6 of 6 members answer"))
        .await;
    assert!(first.starts_with("default/shop: Ready for "), "{first}");
    for part in ["0 ██", "5461 slots", "MEMBER", "2-1", "ClusterReady", "q quit"] {
        assert!(first.contains(part), "{part} is missing:\n{first}");
    }
    assert!(terminal.coloured().contains("\u{1b}[38;5;"), "colours in a terminal");

    terminal.press("f");
    terminal
        .until("paused", |text| text.contains("Frozen: this snapshot is"))
        .await;
    terminal.press("f");
    terminal.until("going on", |text| !text.contains("Frozen")).await;
    terminal.press("s");
    terminal.until("sorted", |text| text.contains("sort (by ops/s)")).await;

    let pods = desk.stage.pods_of("shop").await;
    desk.stage
        .pods
        .kill("default", &pods["1-1"], Duration::from_millis(300));
    terminal
        .until("told of the loss", |text| text.contains("ReplicaLost"))
        .await;
    desk.stage.ready("shop").await;
    terminal
        .until("ready again", |text| text.starts_with("default/shop: Ready"))
        .await;

    terminal.resize(20, 14);
    let narrow = terminal
        .until("narrow", |text| text.lines().any(|line| line == "default/shop: Ready"))
        .await;
    assert!(narrow.contains("MEMBER") && narrow.contains("0-0"), "{narrow}");
    terminal.resize(100, 30);
    terminal.until("wide again", |text| text.contains("ClusterReady")).await;
    terminal.press("q");
    is_clean(&terminal).await;
    desk.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_keeps_its_screen_without_the_api_server_and_restores_the_terminal_on_exit() {
    let desk = Desk::set().await;
    desk.ready("shop", json!({"shards": 1, "replicas": 1})).await;
    let terminal = begin(&desk);
    terminal
        .until("there", |text| text.contains("2 of 2 members answer"))
        .await;
    let user = desk.collapse();
    let old = terminal.until("old", |text| text.contains("This snapshot is")).await;
    assert!(old.contains("0-1") && old.contains("old: the API server"), "{old}");
    let process = std::fs::read_to_string(user.folder.path().join("top.pid")).unwrap();
    let process = Pid::from_raw(process.trim().parse().unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    is_clean(&terminal).await;
}
