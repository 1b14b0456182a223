#!/bin/bash
# soak.sh SECONDS [SEED [KIND]]: rounds of planned operations on real servers under load, with an operator that is killed,
# refused and lied to. KIND is valkey or redkey (there Robin is killed too); without it, rounds alternate. Prints counts; fails when an acknowledged write is lost or status lied.
set -euo pipefail
cd "$(dirname "$0")/.."
export SOAK_SECONDS=${1:-120}
[ -z "${2:-}" ] || export SOAK_SEED=$2
export SOAK_KIND=${3:-}
# Out of the same build as the tests.
cargo build --workspace --all-features --locked --bin soak --bin robin
exec "${CARGO_TARGET_DIR:-target}/debug/soak"
