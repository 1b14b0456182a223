#!/bin/bash
# bench.sh: the figures of every crate that has a bench, release build, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
if [ -r "$cache/kube/admin.kubeconfig" ] && kubectl --kubeconfig "$cache/kube/admin.kubeconfig" get --raw /readyz >/dev/null 2>&1; then
  export CANDOR_REAL_KUBECONFIG=$cache/kube/admin.kubeconfig
else
  say "no real Kubernetes to compare with: make kube starts one"
fi
cargo bench --workspace --locked --bench '*'
for script in bench/*.sh; do "$script"; done
