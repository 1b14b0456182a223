//! Commands that need no API server.

use crate::runner::{Cli, run};

#[tokio::test]
async fn commands_that_need_no_cluster_run_without_one() {
    let user = Cli::with(None);
    let tables = [
        ("docs conditions", "ClusterHealthy"),
        ("docs nodes", "InSync"),
        ("docs advice", "PrimaryLost"),
        ("docs events", "FailoverCompleted"),
        ("docs reference", "shards"),
        ("man", ".TH candor"),
    ];
    for (words, part) in tables {
        let output = user.run(words).await.well();
        assert!(output.contains(part), "{words}: {output}");
    }
    user.run("man --folder man1").await.well();
    let page = std::fs::read_to_string(user.folder.path().join("man1/candor-failover.1")).unwrap();
    assert!(page.contains("The shard with the primary to replace"), "{page}");
    let mut registers = user.command("");
    registers.env("COMPLETE", "bash");
    assert!(run(registers).await.well().contains("complete -o"));
}
