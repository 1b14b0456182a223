#!/bin/bash
# node.sh: a node for the control plane that up.sh started: containerd, kubelet, kube-proxy, folders as volumes, and the
# images that tests run. As root. There is no DNS: neither Candor nor its members ask for names.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
with_node || die "a node needs root"
for tool in ip nft gcc python3; do command -v "$tool" >/dev/null || die "a node needs $tool: install it"; done
[ -x "$node_root/usr/bin/containerd" ] && [ -x "$kube/bin/kube-proxy" ] || die "no node in $kube: run hack/kube/build.sh as root"
export KUBECONFIG=$kube/admin.kubeconfig
rm -rf "$run/containerd" "$run/kubelet" "$run/volumes" "$run/cni"
mkdir -p "$run/cni" "$run/volumes"

cat >"$run/cni/10-pods.conflist" <<JSON
{
  "cniVersion": "1.0.0",
  "name": "candor-pods",
  "plugins": [{
    "type": "bridge", "bridge": "$bridge", "isGateway": true, "hairpinMode": true,
    "ipam": {"type": "host-local", "dataDir": "$run/addresses", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
JSON
rm -rf "$run/addresses"
# Where the machine does not let root raise the odds of a process against the memory killer, a sandbox must not try.
cat >"$run/containerd.toml" <<TOML
version = 2
root = "$run/containerd/root"
state = "$run/containerd/state"
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:candor"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$node_root/usr/lib/cni"
    conf_dir = "$run/cni"
TOML
launch containerd env LD_LIBRARY_PATH="$node_root/usr/lib/$(gcc -print-multiarch)" containerd --config "$run/containerd.toml"
expect containerd "containerd answering" ctr_here version
"$here/images.sh"

# Little disk is no reason to throw anything out: what runs here is small and goes with the node.
cat >"$run/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_address
port: $((port + 3))
healthzPort: $((port + 4))
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet.crt
tlsPrivateKeyFile: $pki/kubelet.key
containerRuntimeEndpoint: unix://$socket
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 100Mi}
imageGCHighThresholdPercent: 100
maxPods: 200
registryPullQPS: 0
YAML
launch kubelet "$kube/bin/kubelet" --config "$run/kubelet.yaml" --kubeconfig "$kube/kubelet.kubeconfig" \
  --hostname-override "$node" --node-ip "$node_address" --node-labels topology.kubernetes.io/zone=a \
  --root-dir "$run/kubelet" --cert-dir "$run/kubelet-pki"
cat >"$run/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: $node
clientConnection: {kubeconfig: $kube/proxy.kubeconfig}
clusterCIDR: $pods
healthzBindAddress: 127.0.0.1:$((port + 5))
metricsBindAddress: 127.0.0.1:$((port + 6))
conntrack: {maxPerCore: 0, min: 0}
nftables: {masqueradeAll: true}
YAML
launch proxy "$kube/bin/kube-proxy" --config "$run/proxy.yaml"
launch storage "$here/storage.sh"
expect kubelet "node registered" kubectl get node "$node"
kubectl wait "node/$node" --for=condition=Ready --timeout=60s >&2
