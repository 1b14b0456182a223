#!/bin/bash
# demo.sh: a tour with real output on a sandbox of its own: create, write, kill a primary, scale under load, roll to
# another version, delete. It ends by itself, and fails when anything it shows is not as promised.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
hack/setup.sh servers older kubectl
PATH=$PATH:$cache/bin
build_candor
set_stage
finish() {
  [ "$?" = 0 ] || tail -n 20 "$folder"/*.log >&2 || true
  end_stage
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

title() { printf '\n== %s\n' "$*"; }
# show COMMAND...: runs it as a person would type it.
show() { printf '\n$ %s\n' "$*"; "$@"; }
is_ready() {
  [ "$(kubectl get vkc demo -o jsonpath='{.metadata.generation} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].observedGeneration}')" = \
    "$(kubectl get vkc demo -o jsonpath='{.metadata.generation} True {.metadata.generation}')" ]
}
not_ready() { ! is_ready; }
pod_of() { kubectl get pods -l "valkey.io/cluster=demo,valkey.io/shard-index=$1,valkey.io/node-index=$2" -o jsonpath='{.items[0].metadata.name}'; }
cli() { kubectl exec "$1" -c server -- valkey-cli -c "${@:2}"; }
expect() { [ "$1" = "$2" ] || die "not as promised: $3: '$1' instead of '$2'"; }
# No grep here ends at its first hit: who writes to it would die of that, and the tour with it.
# Whose server it is can be asked of anybody; that it is dead must not depend on its own help.
kill_server() {
  local ip=$1 process
  for process in /proc/[0-9]*; do
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -E "^[^ ]*valkey-server $ip:6379 " >/dev/null; then
      kill -9 "${process#/proc/}"
      return
    fi
  done
  die "no server listens on $ip"
}
audit_begins() {
  "$program" audit demo --rate 1000 >"$folder/audit" 2>"$folder/audit.log" &
  audit=$!
  started+=("$audit")
}
# audit_ends: shows its table; fails when a write was lost or status said Ready beyond its deadlines.
audit_ends() {
  kill -TERM "$audit"
  local status=0
  wait "$audit" || status=$?
  printf '\n$ candor audit demo\n'
  cat "$folder/audit"
  return "$status"
}

start_sandbox --nodes 3 --zones a,b,c
start_operator

title "A cluster from nothing"
cat >"$folder/demo.yaml" <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata:
  name: demo
spec:
  shards: 3
  replicas: 1
  image: valkey/valkey:8.0
Y
cat "$folder/demo.yaml"
begun=$SECONDS
show kubectl apply --filename "$folder/demo.yaml"
within 60 "Ready within 60 s of creation" is_ready
say "Ready after $((SECONDS - begun)) s"
show kubectl get vkc,vkn,pods
show kubectl get vkc demo -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'

title "Written in one place, read in another"
first=$(pod_of 0 0)
other=$(pod_of 2 1)
printf '\n$ kubectl exec %s -c server -- valkey-cli -c set greeting hello\n' "$first"
cli "$first" set greeting hello
expect "$(cli "$first" get greeting)" hello "what was written is there"
printf '\n$ kubectl exec %s -c server -- valkey-cli -c get greeting\n' "$other"
cli "$other" get greeting | tee "$folder/greeting"
expect "$(cat "$folder/greeting")" hello "what was written is there, wherever it is asked for"

title "A primary is killed with SIGKILL"
audit_begins
within 20 "canaries are written" grep -q auditing "$folder/audit.log"
victim=$(kubectl get vkn -o jsonpath='{range .items[?(@.status.role=="primary")]}{.metadata.name}{"\n"}{end}' | grep -- '-1-[0-9]*$')
ip=$(kubectl get vkn "$victim" -o jsonpath='{.status.podIP}')
printf '\n$ kill -9 (the server of %s on %s)\n' "$victim" "$ip"
kill_server "$ip"
within 5 "status says that it is not Ready" not_ready
kubectl get vkc demo -o 'jsonpath={.status.state} {.status.reason}: {.status.message}{"\n"}'
within 60 "Ready again" is_ready
kubectl get vkc demo -o 'jsonpath={.status.state} {.status.reason}: {.status.message}{"\n"}'
kubectl get events --field-selector involvedObject.kind=ValkeyCluster,type=Warning
expect "$(cli "$(pod_of 0 0)" get greeting)" hello "nothing that was written before is lost"
# The last writes before a kill may not have left the primary; a lie of status is never excused.
audit_ends || true
grep -q 'beyond the deadlines 0.000 s' "$folder/audit" || die "not as promised: status said Ready while it was not so"

title "From Valkey 8.0 to 9.1, and from 3 shards to 5, under 1,000 writes a second"
audit_begins
show kubectl patch vkc demo --type merge --patch '{"spec": {"image": "valkey/valkey:9.1"}}'
within 10 "the change is seen" not_ready
within 300 "Ready with the new version" is_ready
for pod in $(kubectl get pods -l valkey.io/cluster=demo -o name); do
  kubectl exec "$pod" -c server -- valkey-cli info server | grep '^valkey_version:9\.1' >/dev/null || die "not as promised: $pod runs 9.1"
done
say "all six members run 9.1"
show kubectl scale vkc demo --replicas 5
within 10 "the change is seen" not_ready
within 120 "Ready with 5 shards" is_ready
expect "$(kubectl get vkc demo -o jsonpath='{.status.readyShards}')" 5 "five shards are ready"
expect "$(kubectl get pods -l valkey.io/cluster=demo --no-headers | wc -l)" 10 "ten members run"
show kubectl get vkc,vkn
audit_ends || die "not as promised: see the audit above"
expect "$(cli "$(pod_of 0 0)" get greeting)" hello "what was written is there after all that"

title "Deleted"
show kubectl delete vkc demo --timeout 90s
within 60 "nothing is left" sh -c '[ -z "$(kubectl get pods,deployments,services,configmaps,secrets,vkn -l valkey.io/cluster=demo -o name)" ]'
say "nothing is left of it"
title "All as promised"
