//! The operator with a real kubelet and the stand-in as a real server: its health pages decide.

use std::fmt::Write as _;

use dittofs_operator::conditions::ServerCondition::{Available, Progressing};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::DeleteParams;
use kube_sandbox::Sandbox;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{Desk, World, condition_text, is_ready, status};

/// One request to the pod itself.
async fn ask(desk: &Desk<'_>, method: &str, path: &str) -> String {
    let pod: Pod = desk.api().get("files-0").await.unwrap();
    let address = pod.status.unwrap().pod_ip.unwrap();
    let mut stream = TcpStream::connect((address.as_str(), 8080)).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn server_container(pod: &Pod) -> &Container {
    &pod.spec.as_ref().unwrap().containers[0]
}

#[tokio::test]
async fn pitfall_4_an_open_port_is_not_enough_the_servers_own_pages_decide() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images.yaml");
    let mut text = String::from("images:\n  - match: '*dittofs/dittofs:*'\n");
    let standin = env!("CARGO_BIN_EXE_dittofs-standin");
    let _ = writeln!(
        text,
        "    binds: [{{source: '{standin}', target: /opt/dittofs-standin}}]"
    );
    text.push_str("    entrypoint: [dittofs]\n    programs:\n");
    text.push_str("      - {name: dittofs, path: /opt/dittofs-standin, after: [--bind, $POD_IP]}\n");
    std::fs::write(&images, text).unwrap();
    let sandbox = Sandbox::builder().images(&images).start().await.unwrap();
    let world = World::around(sandbox).await;
    let desk = world.desk("health").await;
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    desk.until("files", "is ready", is_ready).await;
    let pod: Pod = desk.api().get("files-0").await.unwrap();
    assert!(
        server_container(&pod)
            .readiness_probe
            .as_ref()
            .unwrap()
            .http_get
            .is_some()
    );
    let read = ask(&desk, "GET", "/stand-in/config").await;
    assert!(read.ends_with("logging: {level: INFO}\n"), "{read}");

    assert!(
        ask(&desk, "POST", "/stand-in/ready/fail")
            .await
            .starts_with("HTTP/1.1 204")
    );
    let observed = desk
        .until("files", "is not available", |server| {
            condition_text(server, Available) == "False StatefulSetNotReady"
        })
        .await;
    assert_eq!(
        (
            status(&observed).ready_replicas,
            condition_text(&observed, Progressing).as_str()
        ),
        (0, "False Settled")
    );
    assert!(
        ask(&desk, "GET", "/health").await.starts_with("HTTP/1.1 200"),
        "its port was open all the time"
    );
    ask(&desk, "POST", "/stand-in/ready/recover").await;
    desk.until("files", "is ready again", is_ready).await;

    // Graceful: the pod has its five seconds, and the server is held until it has ended.
    let began = std::time::Instant::now();
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
    desk.until_deleted("files").await;
    assert!(
        began.elapsed() >= std::time::Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert!(desk.api::<Pod>().get_opt("files-0").await.unwrap().is_none());
}
