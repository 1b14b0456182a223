#!/bin/bash
# run.sh: sets up what is missing, builds, starts the sandbox, applies the sample and shows its status until Ctrl-C.
# CANDOR_NODES and CANDOR_ZONES change the sandbox; CANDOR_SAMPLE is what is applied.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
sample=${CANDOR_SAMPLE:-examples/valkey-servers.yaml}
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin

# The profile that `make test` builds too: the first start comes minutes earlier than with an optimised build.
say "building candor ..."
cargo build --locked -p candor
program=${CARGO_TARGET_DIR:-target}/debug/candor

folder=$(mktemp -d)
config=$folder/kubeconfig
sandbox=
watch=
finish() {
  trap - EXIT INT TERM HUP
  [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
  if [ -n "$sandbox" ]; then
    kill "$sandbox" 2>/dev/null || true
    wait "$sandbox" 2>/dev/null || true
  fi
  rm -rf "$folder"
}
trap finish EXIT
trap 'echo; say "ending the sandbox"; exit 0' INT TERM HUP

# In a group of its own, so that Ctrl-C reaches this script alone and it ends the rest in order.
set -m
"$program" sandbox --nodes "${CANDOR_NODES:-3}" --zones "${CANDOR_ZONES:-a,b,c}" --kubeconfig "$config" >"$folder/out" 2>"$folder/log" &
sandbox=$!
set +m
until grep -q KUBECONFIG "$folder/out"; do
  kill -0 "$sandbox" 2>/dev/null || { cat "$folder/log" >&2; die "the sandbox did not start"; }
  sleep 0.05
done
cat "$folder/out"
export KUBECONFIG=$config
kubectl apply -f "$sample"
say
say "Its status, as it changes:"
mkfifo "$folder/events"
kubectl get pods --watch --output-watch-events --no-headers >"$folder/events" 2>/dev/null &
watch=$!
while read -r event name ready status restarts _; do
  printf '  %s  %-9s %-12s ready %-5s %-18s restarts %s\n' "$(date +%T)" "$event" "$name" "$ready" "$status" "$restarts"
done <"$folder/events" &
for workload in $(kubectl get --filename "$sample" --output name | grep -E '^(deployment|statefulset)'); do
  kubectl rollout status "$workload" --timeout=120s >/dev/null || { kubectl get pods,events; die "$workload was not ready within 120 s"; }
done
say
kubectl get --filename "$sample"
say
say "Ready. Paste into another terminal:"
say
say "    export KUBECONFIG=$config"
say
say "Ctrl-C ends all of it."
wait "$sandbox" || die "the sandbox ended by itself; its words: $(tail -n 3 "$folder/log")"
