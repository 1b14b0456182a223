#!/bin/bash
# live.sh: the tests that need a cluster, on the one in KUBECONFIG if LIVE_KUBECONFIG names it, else on a sandbox.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
tests() {
  KUBECONFIG=$1 cargo test --workspace --all-features --locked --test live --test live_readers -- --ignored
}
if [ -n "${LIVE_KUBECONFIG:-}" ]; then
  tests "$LIVE_KUBECONFIG"
  exit
fi
# Together, so that both come out of the same build as the other tests.
cargo build --workspace --all-features --locked --bin candor --test live --test live_readers
program=${CARGO_TARGET_DIR:-target}/debug/candor
set_stage
start_sandbox
tests "$KUBECONFIG"
