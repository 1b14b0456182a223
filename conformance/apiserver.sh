#!/bin/bash
# apiserver.sh: seeded random request sequences to the sandbox and to a real kube-apiserver, answers compared.
# SEED, SEQUENCES and CONCURRENT (rounds of concurrent requests) change the run; ONLY=N repeats one sequence of it.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
# A separate control plane without controllers: nothing but the sequences may write.
export CANDOR_KUBE=$cache/kube CANDOR_KUBE_PORT=${CANDOR_KUBE_PORT:-16443}
hack/kube/build.sh
running=$(cat "$cache/kube/run/controllers.pid" 2>/dev/null || true)
if [ -n "$running" ] && kill -0 "$running" 2>/dev/null; then
  die "the control plane in $cache/kube runs with controllers, which would write too: make kube-down first"
fi
hack/kube/up.sh --bare
args=(--real "$cache/kube/admin.kubeconfig" --seed "${SEED:-$RANDOM}" --sequences "${SEQUENCES:-1000}" --concurrent "${CONCURRENT:-10}")
[ -z "${ONLY:-}" ] || args+=(--only "$ONLY")
status=0
cargo run --quiet --locked -p kube-sandbox --example conformance -- "${args[@]}" || status=$?
hack/kube/down.sh
exit "$status"
