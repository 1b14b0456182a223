#!/bin/bash
# idle.sh CANDOR [SECONDS]: what an idle member costs the node that up.sh started: its processor time with a cluster of 10
# shards and 10 replicas that nobody uses, less that of the empty node, by member. The operator runs beside the node and is
# not in it. Counted are kubelet, containerd, its shims and what they start (runc), and everything in pods. Control groups
# count, so that other work on this machine is not counted; but where it takes all of the processor, everything costs more.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
runs kubelet >/dev/null || die "no node runs: make kube starts one, as root"
export KUBECONFIG=$kube/admin.kubeconfig
program=${1:?usage: idle.sh CANDOR [SECONDS]}
seconds=${2:-60}
members=20
cluster=candor-idle
spec=${CANDOR_IDLE_SPEC:-'{shards: 10, replicas: 1}'}

# With version 1 of control groups each controller has its own tree; one of them counts processor time.
groups=/sys/fs/cgroup
if [ -d "$groups/cpuacct" ]; then groups=$groups/cpuacct; fi
of_node=$groups/candor-node
# spent GROUP: microseconds of processor time.
spent() {
  if [ -e "$1/cpuacct.usage" ]; then
    echo $(($(cat "$1/cpuacct.usage") / 1000))
  else
    sed -n 's/^usage_usec //p' "$1/cpu.stat"
  fi
}
# The programs of the node into a group of their own. What they start from now on is in it; what they start in a container
# is in the container's.
gather() {
  mkdir -p "$of_node"
  local pid
  for pid in "$(runs kubelet)" "$(runs containerd)" $(grep -lzxF -- "$socket" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
    echo "$pid" >"$of_node/cgroup.procs" 2>/dev/null || true
  done
}
# in_pods PROGRAM: microseconds of the containers that run PROGRAM, with everything that was started in them.
in_pods() {
  local group pid total=0
  while read -r group; do
    for pid in $(cat "$group/cgroup.procs" 2>/dev/null); do
      case $(cat "/proc/$pid/comm" 2>/dev/null) in
      "$1"*)
        total=$((total + $(spent "$group")))
        break
        ;;
      esac
    done
  done < <(find "$groups/kubepods" -mindepth 2 -type d 2>/dev/null)
  echo "$total"
}
read_all() { echo "$(spent "$of_node") $(spent "$groups/kubepods") $(in_pods valkey-server) $(in_pods candor)"; }
# measure: hundredths of a percent of a core, of all four.
measure() {
  local before after
  gather
  before=$(read_all)
  sleep "$seconds"
  after=$(read_all)
  paste <(tr ' ' '\n' <<<"$before") <(tr ' ' '\n' <<<"$after") | while read -r was is; do
    echo $(((is - was) / seconds / 100))
  done | tr '\n' ' '
}
percent() { printf '%d.%02d' $(($1 / 100)) $(($1 % 100)); }
# each VALUE: by member, thousandths of a percent.
each() { printf '%d.%03d' $(($1 * 10 / members / 1000)) $(($1 * 10 / members % 1000)); }

operator=
finish() {
  local status=$?
  kubectl delete valkeycluster "$cluster" --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
  [ -z "$operator" ] || kill "$operator" 2>/dev/null || true
  # Back to where they were, so that the group can go.
  local pid
  for pid in $(cat "$of_node/cgroup.procs" 2>/dev/null); do echo "$pid" >"$groups/cgroup.procs" 2>/dev/null || true; done
  rmdir "$of_node" 2>/dev/null || true
  exit "$status"
}
trap finish EXIT

CANDOR_IMAGE=docker.io/library/candor:idle "$here/images.sh" "$program"
kubectl apply --server-side --filename "$here/../../deploy/crds" >/dev/null
kubectl wait --for=condition=Established --timeout=30s crd/valkeyclusters.valkey.io >/dev/null
# What went before is still being cleared away.
sleep 10
say "the empty node, $seconds s"
read -r node_before pods_before _ <<<"$(measure)"
"$program" operator --exporter-image candor:idle >"$run/idle-operator.log" 2>&1 &
operator=$!
kubectl apply --filename - >/dev/null <<YAML
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: $cluster}
spec: $spec
YAML
kubectl wait valkeycluster "$cluster" --for=condition=Ready --timeout=180s >/dev/null
kubectl wait pods --selector "valkey.io/cluster=$cluster" --for=condition=Ready --timeout=60s >/dev/null
# What was only just formed is not idle yet.
sleep 15
say "$members idle members, $seconds s"
read -r node pods servers exporters <<<"$(measure)"
restarts=$(kubectl get pods --selector "valkey.io/cluster=$cluster" --output jsonpath='{.items[*].status.containerStatuses[*].restartCount}' | tr ' ' '\n' | sort -u | tr '\n' ' ')
[ "$restarts" = "0 " ] || die "containers were restarted: $restarts"
total=$((node + pods - node_before - pods_before))
echo "the node: $(percent $((node_before + pods_before))) % of a core while empty, $(percent $((node + pods))) % with $members idle members"
echo "each member: $(each "$total") % of a core ($(each $((node - node_before))) kubelet, containerd and runc, $(each "$servers") in the server's container, $(each "$exporters") in the exporter's)"
