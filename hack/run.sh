#!/bin/bash
# run.sh: sets up what is missing, builds, starts the sandbox and the operator, applies the sample and shows its status
# as it changes, until Ctrl-C.
# CANDOR_NODES and CANDOR_ZONES change the sandbox; CANDOR_SAMPLE is what is applied.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
sample=${CANDOR_SAMPLE:-examples/valkeycluster.yaml}
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin

# The profile that `make test` builds too: the first start comes minutes earlier than with an optimised build.
say "building candor ..."
cargo build --locked -p candor
program=${CARGO_TARGET_DIR:-target}/debug/candor

folder=$(mktemp -d)
config=$folder/kubeconfig
started=()
finish() {
  trap - EXIT INT TERM HUP
  # The operator before the sandbox it talks to.
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap finish EXIT
trap 'echo; say "ending the operator and the sandbox"; exit 0' INT TERM HUP

# In groups of their own, so that Ctrl-C reaches this script alone and it ends the rest in order.
set -m
"$program" sandbox --nodes "${CANDOR_NODES:-3}" --zones "${CANDOR_ZONES:-a,b,c}" --kubeconfig "$config" >"$folder/out" 2>"$folder/log" &
sandbox=$!
started+=("$sandbox")
until grep -q KUBECONFIG "$folder/out"; do
  kill -0 "$sandbox" 2>/dev/null || { cat "$folder/log" >&2; die "the sandbox did not start"; }
  sleep 0.05
done
head -n 1 "$folder/out"
export KUBECONFIG=$config
kubectl apply --filename deploy/crds >/dev/null
"$program" operator --lease-namespace default >"$folder/operator.log" 2>&1 &
operator=$!
started+=("$operator")
kubectl wait --for=condition=Established --timeout=30s --filename deploy/crds >/dev/null
say "The operator runs; its log: $folder/operator.log"
say
say "\$ kubectl apply -f $sample"
kubectl apply --filename "$sample"
say
say "Status and events, as they change:"
mkfifo "$folder/rows" "$folder/events"
kubectl get valkeyclusters --watch --no-headers \
  --output custom-columns='S:.status.state,R:.status.reason,M:.status.message,N:.status.readyShards' >"$folder/rows" 2>/dev/null &
started+=("$!")
while read -r row; do printf '  %s  status  %s ready shards\n' "$(date +%T)" "$row"; done <"$folder/rows" &
kubectl get events --watch --no-headers --field-selector involvedObject.kind=ValkeyCluster \
  --output custom-columns='R:.reason,M:.message' >"$folder/events" 2>/dev/null &
started+=("$!")
while read -r row; do printf '  %s  event   %s\n' "$(date +%T)" "$row"; done <"$folder/events" &
set +m
kubectl wait --for=condition=Ready --timeout=120s --filename "$sample" >/dev/null || {
  kubectl get valkeyclusters,pods,events
  tail -n 20 "$folder/operator.log" >&2
  die "the cluster was not Ready within 120 s"
}
say
say "\$ candor status valkeycluster-sample"
"$program" status valkeycluster-sample || kubectl get valkeyclusters,valkeynodes,pods
say
say "Paste into another terminal, and try: kubectl scale vkc valkeycluster-sample --replicas 5"
say "and watch it: $(realpath "$program") status valkeycluster-sample --watch"
say
say "    export KUBECONFIG=$config"
say
say "Ctrl-C ends all of it."
wait -n "$sandbox" "$operator" || true
die "the sandbox or the operator ended by itself; their words: $(tail -n 3 "$folder/log" "$folder/operator.log")"
