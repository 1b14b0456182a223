#!/bin/bash
# bench.sh: create 3x1 on the Kubernetes that up.sh started, the operator's way and a person's own in turns, and what an idle
# member costs the node; release build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
cd "$here/../.."
runs kubelet >/dev/null || die "no node runs: make kube starts one, as root"
# The program of the image: without the sandbox.
cargo build --locked --release --no-default-features --package candor --package operator-bench
built=${CARGO_TARGET_DIR:-target}/release
"$here/idle.sh" "$built/candor"
"$built/operator-bench" --candor "$built/candor" --kubeconfig "$kube/admin.kubeconfig" "$@"
