//! `kubectl candor`: the same program under the name by which kubectl finds its plugins.

use std::os::unix::fs::symlink;

use serde_json::json;
use tokio::process::Command;

use crate::desk::Desk;
use crate::runner::{PROGRAM, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_finds_the_program_and_completes_names_of_clusters() {
    let desk = Desk::set().await;
    desk.stage.create("shop", json!({"shards": 1})).await;
    desk.stage.create("shipping", json!({"shards": 1})).await;
    let bin = desk.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["kubectl-candor", "kubectl_complete-candor"] {
        symlink(PROGRAM, bin.join(name)).unwrap();
    }
    let cache =
        std::env::var("CANDOR_CACHE").unwrap_or_else(|_| format!("{}/.cache/candor", std::env::var("HOME").unwrap()));
    let path = format!("{}:{}:{cache}/bin", bin.display(), std::env::var("PATH").unwrap());
    let kubectl = async |words: &[&str]| {
        // `Command` searches this process's PATH for the program; `env` searches the modified PATH.
        let mut shell = Command::new("env");
        shell
            .arg(format!("PATH={path}"))
            .arg("kubectl")
            .args(words)
            .env("KUBECONFIG", desk.kubeconfig());
        run(shell).await
    };
    let there = kubectl(&["version", "--client"]).await;
    assert!(there.fine, "kubectl is missing: run `make setup` once: {there:?}");
    let status = kubectl(&["candor", "status"]).await.well();
    assert!(status.contains("shop") && status.contains("shipping"), "{status}");
    let help = kubectl(&["candor", "status", "--help"]).await.well();
    assert!(help.contains("Usage: kubectl candor status"), "{help}");
    let wrong = kubectl(&["candor", "status", "shpo"]).await;
    assert!(!wrong.fine && wrong.err.contains("Did you mean shop"), "{wrong:?}");
    let list = kubectl(&["plugin", "list"]).await;
    assert!(list.out.contains("kubectl-candor"), "{list:?}");

    for (typed, candidates) in [
        (vec!["status", "sh"], vec!["shipping", "shop"]),
        (vec!["failover", "sho"], vec!["shop"]),
        (vec!["status", "-n", "kube-system", "s"], vec![]),
    ] {
        let words: Vec<&str> = ["__complete", "candor"]
            .into_iter()
            .chain(typed.iter().copied())
            .collect();
        let output = kubectl(&words).await;
        let found: Vec<&str> = output.out.lines().filter(|line| !line.starts_with(':')).collect();
        assert_eq!(found, candidates, "{typed:?}: {output:?}");
        assert!(output.out.lines().any(|line| line == ":4"), "no files: {output:?}");
    }
    let words = kubectl(&["__complete", "candor", "des"]).await;
    assert!(words.out.starts_with("describe\t"), "{words:?}");
    desk.end().await;
}
