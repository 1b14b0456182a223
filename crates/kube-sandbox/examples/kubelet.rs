//! Runs the sandbox's kubelet for any API server, such as a real one: `KUBECONFIG=… cargo run --example kubelet`.
//! Its words and statuses are then judged by the real thing.

use kube_sandbox::kubelet::{Kubelet, KubeletConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = kube::Client::try_default().await?;
    let kubelet = Kubelet::start(client, KubeletConfig::default()).await?;
    println!("node sandbox-0 is ready; Ctrl-C ends its pods");
    tokio::signal::ctrl_c().await?;
    kubelet.stop().await;
    Ok(())
}
