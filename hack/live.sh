#!/bin/bash
# live.sh: the tests that need a cluster, on the one in KUBECONFIG if LIVE_KUBECONFIG names it, else on a sandbox.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
tests() {
  KUBECONFIG=$1 cargo test --workspace --all-features --locked --test live --test live_readers -- --ignored
}
if [ -n "${LIVE_KUBECONFIG:-}" ]; then
  tests "$LIVE_KUBECONFIG"
  exit
fi
# Together, so that both come out of the same build as the other tests.
cargo build --workspace --all-features --locked --bin candor --test live --test live_readers
folder=$(mktemp -d)
"${CARGO_TARGET_DIR:-target}/debug/candor" sandbox --kubeconfig "$folder/kubeconfig" >"$folder/out" 2>"$folder/log" &
sandbox=$!
finish() {
  kill "$sandbox" 2>/dev/null || true
  wait "$sandbox" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
until grep -q KUBECONFIG "$folder/out"; do
  kill -0 "$sandbox" 2>/dev/null || { cat "$folder/log" >&2; die "the sandbox did not start"; }
  sleep 0.05
done
tests "$folder/kubeconfig"
