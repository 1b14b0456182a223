//! A terminal of twenty columns.

use serde_json::json;

use crate::desk::Desk;
use crate::terminal::Terminal;

const COLUMNS: u16 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_of_twenty_columns_is_enough_for_an_answer() {
    let desk = Desk::set().await;
    desk.ready("shop", json!({"shards": 1, "replicas": 1})).await;
    let table = [
        ("status", "shop"),
        ("status shop", "default/shop: Ready"),
        ("describe shop", "ValkeyCluster"),
        ("events shop", "DeploymentCrea"),
        ("history shop", "Ready"),
        ("plan shop --shards 2", "2 shards"),
        ("doctor", "holds the lease"),
    ];
    let lines: Vec<String> = table.iter().map(|(words, _)| desk.line(words)).collect();
    let line = lines.join("; echo END; ");
    let terminal = Terminal::start(
        desk.folder.path(),
        (COLUMNS, 50),
        &format!("{line}; echo ALL; exec sleep 600"),
    );
    terminal
        .until("ended", |text| text.lines().any(|line| line == "ALL"))
        .await;
    let text = terminal.all();
    let output: Vec<&str> = text.split("END\n").collect();
    for ((words, part), output) in table.iter().zip(output) {
        // Text that is wrapped over lines still contains the same words.
        let flowing = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains(part), "{words}:\n{output}");
        for line in output.lines() {
            // A word that is wider than the terminal is an address or a name: if it were broken, it could not be
            // copied.
            let fits = line.trim_end().chars().count() <= usize::from(COLUMNS);
            assert!(
                fits || !line.trim().contains(' '),
                "{words}: {line:?} is too wide:\n{output}"
            );
        }
    }
    desk.end().await;
}
