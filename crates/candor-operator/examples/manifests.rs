//! Writes `deploy/install.yaml`, `deploy/chart` and `deploy/monitoring`.

use std::error::Error;
use std::fs;
use std::path::Path;

use candor_operator::manifests::{Options, alerts, chart, dashboard, render, yaml};

const HEAD: &str = "\
# Everything that runs Candor's operator, for every namespace:
#
#     kubectl apply --server-side -f install.yaml
#
# Generated; `candor install --render` writes the same with your choices, and `make generate` writes this file.
";

fn main() -> Result<(), Box<dyn Error>> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let objects = yaml(&render(&Options::default()))?;
    fs::write(deploy.join("install.yaml"), format!("{HEAD}{objects}"))?;
    for (path, text) in chart::files()? {
        let path = deploy.join("chart").join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
    }
    let monitoring = deploy.join("monitoring");
    fs::create_dir_all(&monitoring)?;
    fs::write(monitoring.join("alerts.yaml"), yaml(&[alerts::rules()])?)?;
    fs::write(
        monitoring.join("prometheus-rule.yaml"),
        yaml(&[alerts::prometheus_rule()])?,
    )?;
    let dashboard = serde_json::to_string_pretty(&dashboard::dashboard())? + "\n";
    fs::write(monitoring.join("dashboard.json"), dashboard)?;
    Ok(())
}
