#!/bin/bash
# example.sh: builds the example operator, its stand-in and the demo, and runs the demo on a sandbox until it ends.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
say "building the example operator ..."
cargo build --locked -p dittofs-operator --bins --example demo
exec "${CARGO_TARGET_DIR:-target}/debug/examples/demo"
