#!/bin/bash
# run.sh: sets up what is missing, builds, starts the sandbox and the operator, applies the sample and shows its status
# as it changes, until Ctrl-C.
# CANDOR_NODES and CANDOR_ZONES change the sandbox; CANDOR_SAMPLE is what is applied.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
sample=${CANDOR_SAMPLE:-examples/valkeycluster.yaml}
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin

build_candor
set_stage
trap 'echo; say "ending the operator and the sandbox"; exit 0' INT TERM HUP

# In groups of their own, so that Ctrl-C reaches this script alone and it ends the rest in order.
set -m
start_sandbox --nodes "${CANDOR_NODES:-3}" --zones "${CANDOR_ZONES:-a,b,c}"
head -n 1 "$folder/out"
start_operator --lease-namespace default
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
say "and watch it: $program status valkeycluster-sample --watch"
say
say "    export KUBECONFIG=$KUBECONFIG"
say
say "Ctrl-C ends all of it."
wait -n "$sandbox" "$operator" || true
die "the sandbox or the operator ended by itself; their words: $(tail -n 3 "$folder/sandbox.log" "$folder/operator.log")"
