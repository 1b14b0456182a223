//! Writes `deploy/crd.yaml`.

use std::error::Error;
use std::fs;
use std::path::Path;

use dittofs_operator::api::DittoServer;
use kube::CustomResourceExt;

fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crd.yaml");
    fs::write(file, serde_norway::to_string(&DittoServer::crd())?)?;
    Ok(())
}
