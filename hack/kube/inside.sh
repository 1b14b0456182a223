#!/bin/bash
# inside.sh [CANDOR]: the operator inside the Kubernetes that up.sh started, from an image made here and from
# deploy/install.yaml as it stands: a cluster becomes Ready in a namespace that enforces the restricted Pod Security Standard,
# is scaled out while the operator is killed, loses nothing, rolls nothing; a server that hangs leaves the Service and is
# restarted within a minute, an exporter that dies costs no server; and it is deleted. Ends with 0 when all of it is so.
# Without CANDOR the program is built first (release).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
cd "$here/../.."
runs kubelet >/dev/null || die "no node runs: make kube starts one, as root"
export KUBECONFIG=$kube/admin.kubeconfig
program=${1:-}
if [ -z "$program" ]; then
  cargo build --locked --release -p candor --no-default-features
  program=${CARGO_TARGET_DIR:-target}/release/candor
fi
image=$(sed -n 's/^ *image: *\(candor:.*\)/\1/p' deploy/install.yaml | head -n 1)
CANDOR_IMAGE=docker.io/library/$image "$here/images.sh" "$program"

space=candor-inside
cluster=valkeycluster-sample
# Every key is asked of its owner: a client that is redirected connects anew each time.
keys=300
begun=$(date +%s%1N)
tell() {
  local tenths=$(($(date +%s%1N) - begun))
  printf '%4d.%d s  %s\n' $((tenths / 10)) $((tenths % 10)) "$*"
}
in_space() { kubectl --namespace "$space" "$@"; }
# On the way out, what a person would ask for first.
finish() {
  local status=$?
  if [ "$status" -ne 0 ]; then
    in_space get valkeyclusters,pods >&2 || true
    kubectl --namespace candor get pods >&2 || true
    kubectl --namespace candor logs deployment/candor-operator --tail 20 >&2 || true
  fi
  in_space delete valkeyclusters --all --timeout=60s >/dev/null 2>&1 || true
  kubectl delete namespace "$space" --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
  kubectl delete --filename deploy/install.yaml --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
  exit "$status"
}
trap finish EXIT

kubectl apply --filename deploy/install.yaml >/dev/null
kubectl --namespace candor rollout status deployment/candor-operator --timeout=60s >/dev/null
tell "installed: $(kubectl --namespace candor get pods --output jsonpath='{.items[0].status.phase} {.items[0].spec.containers[0].image}')"
"$here/stolen-token.sh"
tell "what a stolen token may not do was tried"

kubectl create namespace "$space" >/dev/null
kubectl label namespace "$space" pod-security.kubernetes.io/enforce=restricted >/dev/null
tell "kubectl apply -f examples/valkeycluster.yaml"
in_space apply --filename examples/valkeycluster.yaml >/dev/null
in_space wait valkeycluster "$cluster" --for=condition=Ready --timeout=90s >/dev/null
tell "Ready: $(in_space get valkeycluster "$cluster" --output jsonpath='{.status.readyShards} shards, {.status.message}')"

pods() { in_space get pods --selector "valkey.io/cluster=$cluster" --output jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
ask() { in_space exec -i "$(in_space get pods --selector "valkey.io/cluster=$cluster" --output name | head -n 1)" --container server -- valkey-cli -c; }
before=$(pods)
written=$(seq "$keys" | sed 's/.*/SET key:& value-&/' | ask | grep -c '^OK')
[ "$written" = "$keys" ] || die "$written of $keys keys were written"
first=$(in_space get pods --selector "valkey.io/cluster=$cluster" --output jsonpath='{.items[0].metadata.name}')
in_space get --raw "/api/v1/namespaces/$space/pods/$first:9121/proxy/metrics" | grep '^redis_up.* 1' >/dev/null ||
  die "the exporter beside $first does not say that its server is up"
tell "$keys keys written; the exporter answers"

in_space scale valkeycluster "$cluster" --replicas 5 >/dev/null
tell "kubectl scale valkeycluster $cluster --replicas 5"
# Ready goes before anything is done: from there on the operator is in the middle of it.
said() { in_space get valkeycluster "$cluster" --output jsonpath='{.status.state}/{.status.reason}, {.status.readyShards} shards ready'; }
in_space wait valkeycluster "$cluster" --for=condition=Ready=false --timeout=30s >/dev/null
kubectl --namespace candor delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
tell "operator killed: $(said)"
# Moving takes less than a second; whoever comes too late to see it has lost nothing.
in_space wait valkeycluster "$cluster" --for=jsonpath='{.status.reason}'=RebalancingSlots --timeout=40s >/dev/null 2>&1 || true
kubectl --namespace candor delete pods --all --wait=false >/dev/null
tell "operator ended: $(said)"
in_space wait valkeycluster "$cluster" --for=jsonpath='{.status.readyShards}'=5 --timeout=120s >/dev/null
in_space wait valkeycluster "$cluster" --for=condition=Ready --timeout=120s >/dev/null
tell "Ready: $(in_space get valkeycluster "$cluster" --output jsonpath='{.status.readyShards} shards, {.status.message}')"

found=$(seq "$keys" | sed 's/.*/GET key:&/' | ask | grep -c '^"\?value-' || true)
[ "$found" = "$keys" ] || die "$found of $keys keys are left"
rolled=$(comm -23 <(echo "$before") <(pods))
[ -z "$rolled" ] || die "pods were replaced: $rolled"
restarts=$(in_space get pods --output jsonpath='{.items[*].status.containerStatuses[*].restartCount}' | tr ' ' '\n' | sort -u | tr '\n' ' ')
[ "$restarts" = "0 " ] || die "containers were restarted: $restarts"
tell "all $keys keys are there; no pod was replaced, no container restarted"

# What the probes promise, on a replica: nothing is lost by it.
replica=$(for pod in $(in_space get pods --selector "valkey.io/cluster=$cluster" --output name); do
  in_space exec "$pod" --container server -- sh -c '. /scripts/lib.sh; cli INFO replication' | grep -q '^role:slave' && echo "${pod#pod/}" && break
done) || true
[ -n "$replica" ] || die "no replica in $cluster"
pod() { in_space get pod "$replica" --output jsonpath="$1"; }
restarted() { pod "{.status.containerStatuses[?(@.name==\"$1\")].restartCount}"; }
# process PROGRAM: its process in that pod, on this node.
process() {
  local uid at
  uid=$(pod '{.metadata.uid}')
  for at in /proc/[0-9]*; do
    if grep -q "$1" "$at/comm" 2>/dev/null && tr _ - <"$at/cgroup" 2>/dev/null | grep -q "$uid"; then echo "${at#/proc/}"; fi
  done
}
# within SECONDS WORDS COMMAND...
within() {
  local end=$(($(date +%s) + $1)) words=$2
  shift 2
  until "$@"; do
    [ "$(date +%s)" -lt "$end" ] || die "$replica: not in time: $words"
    sleep 0.2
  done
}
ready() { [ "$(pod '{.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
unready() { ! ready; }
served() { in_space get endpointslices --selector "kubernetes.io/service-name=valkey-$cluster-client" \
  --output jsonpath='{range .items[*].endpoints[?(@.conditions.ready==true)]}{.targetRef.name}{"\n"}{end}' | grep -qx "$replica"; }
unserved() { ! served; }
[ "$(pod '{.spec.containers[?(@.name=="server")].readinessProbe.httpGet.path}')" = /readyz ] || die "readiness is not asked of the exporter"
within 30 "ready" ready
within 10 "in the Service" served
kill -KILL "$(process candor)"
exporter_again() { [ "$(restarted metrics-exporter)" = 1 ] && ready; }
within 60 "ready after its exporter was killed" exporter_again
[ "$(restarted server)" = 0 ] || die "the server of $replica was restarted for its exporter"
tell "an exporter was killed: its server runs on, its pod is ready again"
kill -STOP "$(process valkey-server)"
hung=$(date +%s%1N)
tenths() { local took=$(($(date +%s%1N) - hung)); echo "$((took / 10)).$((took % 10)) s"; }
within 15 "unready while its server hangs" unready
within 5 "out of the Service" unserved
unready_after=$(tenths)
server_again() { [ "$(restarted server)" = 1 ]; }
within 60 "restarted after its server hung" server_again
tell "a server hung: its pod left the Service after $unready_after and was restarted after $(tenths)"
within 60 "ready after its server was restarted" ready
in_space wait valkeycluster "$cluster" --for=condition=Ready --timeout=60s >/dev/null

in_space delete valkeycluster "$cluster" --timeout=60s >/dev/null
in_space wait pods --all --for=delete --timeout=60s >/dev/null
tell "deleted: $(in_space get deployments,statefulsets,services,secrets,pods --no-headers 2>/dev/null | wc -l) objects left"
