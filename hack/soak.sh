#!/bin/bash
# soak.sh SECONDS [SEED]: rounds of planned operations on real servers under load, with an operator that is killed,
# refused and lied to. Prints counts; fails when an acknowledged write is lost or status lied.
set -euo pipefail
cd "$(dirname "$0")/.."
export SOAK_SECONDS=${1:-120}
[ -z "${2:-}" ] || export SOAK_SEED=$2
# Out of the same build as the tests.
cargo build --workspace --all-features --locked --bin soak
exec "${CARGO_TARGET_DIR:-target}/debug/soak"
