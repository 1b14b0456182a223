#!/bin/bash
# run.sh: sets up what is missing, builds, starts the sandbox and the operator, applies the sample and shows its status
# as it changes, until Ctrl-C.
# KIND=redkey applies a RedkeyCluster instead of a ValkeyCluster. CANDOR_NODES and CANDOR_ZONES change the sandbox;
# CANDOR_SAMPLE is the manifest to apply.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
case ${KIND:-valkey} in
  valkey)
    kind=ValkeyCluster short=vkc sample=examples/valkeycluster.yaml server=servers
    columns='S:.status.state,R:.status.reason,M:.status.message,N:.status.readyShards' ready=' ready'
    ;;
  redkey)
    kind=RedkeyCluster short=rkcl sample=examples/redkeycluster.yaml server=redis8
    columns='S:.status.status,T:.status.substatus.status,M:.status.conditions[?(@.type=="Ready")].message' ready=''
    ;;
  *) die "KIND is valkey or redkey, not $KIND" ;;
esac
sample=${CANDOR_SAMPLE:-$sample}
hack/setup.sh "$server" kubectl
PATH=$PATH:$cache/bin

build_candor
set_stage
# `make apply-rkcl` finds the sandbox by it.
ln -sfn "$KUBECONFIG" "$cache/run.kubeconfig"
trap 'echo; say "ending the operator and the sandbox"; exit 0' INT TERM HUP

# In groups of their own, so that Ctrl-C reaches this script alone and it ends the rest in order.
set -m
start_sandbox --nodes "${CANDOR_NODES:-3}" --zones "${CANDOR_ZONES:-a,b,c}"
say "$(head -n 1 "$folder/out" | sed 's/\. In another terminal:$/./')"
start_operator --lease-namespace default
say "The operator runs; its log: $folder/operator.log"
# The usual port, or any other if that is taken.
port=8088
(exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && port=0
"$program" web --actions --listen 127.0.0.1:$port >"$folder/web.out" 2>"$folder/web.log" &
started+=("$!")
within 20 "the page is served" grep -qs http "$folder/web.out"
page=$(grep -o 'http://[^ ]*' "$folder/web.out")
say "The web page: $page"
say
say "\$ kubectl apply -f $sample"
kubectl apply --filename "$sample"
name=$(kubectl get --filename "$sample" --output jsonpath='{.metadata.name}')
say
say "Status and events, as they change:"
mkfifo "$folder/rows" "$folder/events"
kubectl get "$short" --watch --no-headers --output custom-columns="$columns" >"$folder/rows" 2>/dev/null &
started+=("$!")
while read -r row; do printf '  %s  status  %s%s\n' "$(date +%T)" "${row//<none>/-}" "$ready"; done <"$folder/rows" &
kubectl get events --watch --no-headers --field-selector "involvedObject.kind=$kind" \
  --output custom-columns='R:.reason,M:.message' >"$folder/events" 2>/dev/null &
started+=("$!")
while read -r row; do printf '  %s  event   %s\n' "$(date +%T)" "$row"; done <"$folder/events" &
set +m
kubectl wait --for=condition=Ready --timeout=120s --filename "$sample" >/dev/null || {
  kubectl get "$short,pods,events"
  tail -n 20 "$folder/operator.log" >&2
  die "the cluster was not Ready within 120 s"
}
say
say "\$ candor status $name"
"$program" status "$name" || kubectl get "$short,pods"
say
say "Look at it in a browser: $page"
say "Paste into another terminal, and try: kubectl scale $short $name --replicas 5"
say "and watch it: $program status $name --watch"
say
say "    export KUBECONFIG=$KUBECONFIG"
say
say "Ctrl-C ends all of it."
wait -n "$sandbox" "$operator" || true
die "the sandbox or the operator ended by itself; their last lines: $(tail -n 3 "$folder/sandbox.log" "$folder/operator.log")"
