//! Writes `deploy/crds` and the pages about each kind: its fields, and its conditions and events.

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

const REDKEY_FIELDS: &str = "\
# RedkeyCluster: every field

Generated from the schema by `make generate`; `kubectl explain rkcl.spec` prints the same.
Defaults that stand in the type column are stored with the object. Every other default is the operator's.

A whole example is [examples/redkeycluster.yaml](../examples/redkeycluster.yaml). For clusters that another operator created:
[moving from redkey-operator](moving-from-redkey.md).

";

const REDKEY_CONDITIONS: &str = "\
# RedkeyCluster: conditions, reasons, events

Generated from their declarations by `make generate`.

A condition has a severity (`Error`, `Warning`, `Info`) exactly while it is not as it should be. `status.status` and
`status.substatus` are the words of the table that `kubectl get rkcl` prints; scripts should wait for the condition `Ready` with
its `observedGeneration`. An event marks a transition: a healthy cluster emits none, and a repeated one is counted.

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
    fs::write(
        docs.join("redkeycluster.md"),
        format!("{REDKEY_FIELDS}{}", reference::redkey_fields()),
    )?;
    fs::write(
        docs.join("redkeycluster-conditions.md"),
        format!("{REDKEY_CONDITIONS}{}", reference::redkey_conditions()),
    )?;
    Ok(())
}
