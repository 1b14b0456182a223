#!/bin/bash
# run.sh: sets up what is missing, builds, starts the sandbox, applies the sample and shows its status until Ctrl-C.
# CANDOR_NODES and CANDOR_ZONES change the sandbox; CANDOR_SAMPLE is what is applied.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
sample=${CANDOR_SAMPLE:-examples/valkey-servers.yaml}
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin

say "building candor ..."
cargo build --release --locked -p candor
program=${CARGO_TARGET_DIR:-target}/release/candor

folder=$(mktemp -d)
config=$folder/kubeconfig
sandbox=
finish() {
  trap - EXIT INT TERM HUP
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
kubectl get --filename "$sample" >/dev/null
# A watch of the sample's own objects and of their pods; both end with the sandbox.
kubectl get pods --watch --output-watch-events --no-headers 2>/dev/null |
  while read -r event name ready status restarts _; do
    printf '%s  %-9s %-14s ready %-5s %-20s restarts %s\n' "$(date +%T)" "$event" "$name" "$ready" "$status" "$restarts"
  done &
watch=$!
if kubectl rollout status --filename "$sample" --timeout=120s 2>/dev/null || kubectl wait --for=condition=Ready pods --all --timeout=60s; then
  say
  kubectl get --filename "$sample"
  say
  say "Ready. Paste into another terminal:"
  say
  say "    export KUBECONFIG=$config"
  say
  say "Ctrl-C ends all of it."
fi
wait "$sandbox" || die "the sandbox ended by itself; its words: $(tail -n 3 "$folder/log")"
kill "$watch" 2>/dev/null || true
