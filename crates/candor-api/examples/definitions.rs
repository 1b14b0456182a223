//! Writes `deploy/crds`, `docs/valkeycluster.md` and `docs/conditions-and-events.md`.

use std::error::Error;
use std::fs;
use std::path::Path;

use candor_api::{crds, reference};

const FIELDS: &str = "\
# ValkeyCluster: every field

Written from the schema by `make generate`; `kubectl explain vkc.spec` says the same, and `candor docs reference` prints it.
Defaults are the operator's, not the schema's: a new version changes nothing that is stored.

A whole example is [examples/valkeycluster.yaml](../examples/valkeycluster.yaml); by task: [scaling](scaling.md),
[upgrades](upgrades.md), [users](users.md), [TLS](tls.md), [persistence](persistence.md), [monitoring](monitoring.md).

";

const CONDITIONS: &str = "\
# ValkeyCluster: conditions, reasons, events

Written from their declarations by `make generate`; `candor docs conditions`, `nodes`, `advice` and `events` print it.

A condition has a severity (`Error`, `Warning`, `Info`) exactly while it is not as it should be. A healthy cluster carries
`Ready`, `Progressing`, `ClusterFormed` and `SlotsAssigned` and no other; every other one is there only while it has something
to say. `status.state` is derived from them: `Ready`, `Reconciling`, `Initializing`, `Degraded` or `Failed`.
An event marks a transition: a healthy cluster emits none, and the same thing told twice is one event with a count.

";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    fs::create_dir_all(&folder)?;
    for crd in crds::all() {
        fs::write(folder.join(crds::file_name(&crd)), crds::yaml(&crd)?)?;
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::write(
        docs.join("valkeycluster.md"),
        format!("{FIELDS}{}", reference::fields()),
    )?;
    fs::write(
        docs.join("conditions-and-events.md"),
        format!("{CONDITIONS}{}", reference::conditions()),
    )?;
    Ok(())
}
