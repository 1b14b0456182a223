//! Writes `deploy/crds`.

use std::error::Error;
use std::fs;
use std::path::Path;

use candor_api::crds;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    fs::create_dir_all(&folder)?;
    for crd in crds::all() {
        fs::write(folder.join(crds::file_name(&crd)), crds::yaml(&crd)?)?;
    }
    Ok(())
}
