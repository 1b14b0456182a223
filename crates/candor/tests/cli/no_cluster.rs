//! Commands that need no API server.

use crate::hand::{Hand, run};

#[tokio::test]
async fn words_that_need_no_cluster_need_none() {
    let hand = Hand::with(None);
    let tables = [
        ("docs conditions", "ClusterHealthy"),
        ("docs nodes", "InSync"),
        ("docs advice", "PrimaryLost"),
        ("docs events", "FailoverCompleted"),
        ("docs reference", "shards"),
        ("man", ".TH candor"),
    ];
    for (words, part) in tables {
        let said = hand.say(words).await.well();
        assert!(said.contains(part), "{words}: {said}");
    }
    hand.say("man --folder man1").await.well();
    let page = std::fs::read_to_string(hand.folder.path().join("man1/candor-failover.1")).unwrap();
    assert!(page.contains("The shard with the primary to replace"), "{page}");
    let mut registers = hand.command("");
    registers.env("COMPLETE", "bash");
    assert!(run(registers).await.well().contains("complete -o"));
}
