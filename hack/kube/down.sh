#!/bin/bash
# down.sh: ends what up.sh started, pods first, and waits for it.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
export KUBECONFIG=$kube/admin.kubeconfig

# Without controllers nothing comes back, and the kubelet takes pods away in order: processes, networks, mounts.
empty_node() {
  kubectl delete pods --all --all-namespaces --grace-period=0 --force --wait=false >/dev/null 2>&1
  for _ in $(seq 100); do
    [ -n "$(ctr_here containers list --quiet 2>/dev/null)" ] || return
    sleep 0.2
  done
  say "pods were still there after 20 s: they are ended with the node"
}

end storage
end scheduler
end controllers
if runs kubelet >/dev/null && runs containerd >/dev/null; then
  empty_node
  end kubelet
  for task in $(ctr_here tasks list --quiet 2>/dev/null); do ctr_here tasks kill --signal KILL "$task" 2>/dev/null; done
fi
end kubelet
end proxy
end containerd
end apiserver
end etcd
if with_node && [ -d "$run/containerd" ]; then
  # A shim outlives its containerd; ours are those that were started for our socket.
  for shim in $(grep -lzxF -- "$socket" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do kill -9 "$shim" 2>/dev/null; done
  awk -v under="$run/" 'index($2, under) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
  nft list tables 2>/dev/null | grep ' kube-proxy$' | while read -r kind family name; do nft delete "$kind" "$family" "$name"; done
  ip link delete "$bridge" 2>/dev/null
  ip address delete "$node_address/32" dev lo 2>/dev/null
  rm -rf "$run/containerd" "$run/kubelet" "$run/volumes" "$run/addresses"
fi
true
