#!/bin/bash
# up.sh [--bare]: starts the Kubernetes that build.sh built, with an empty store: the control plane, and as root a node.
# --bare leaves the controllers, the scheduler and the node out, so that nothing but the caller writes.
# Does nothing when it runs already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
for tool in openssl kubectl; do command -v "$tool" >/dev/null || die "starting Kubernetes needs $tool: install it"; done
[ -x "$kube/bin/etcd" ] || die "no control plane in $kube: run hack/kube/build.sh"
export KUBECONFIG=$kube/admin.kubeconfig
if kubectl get --raw /readyz >/dev/null 2>&1; then
  say "Kubernetes runs already: export KUBECONFIG=$KUBECONFIG"
  exit
fi
"$here/down.sh"
mkdir -p "$pki" "$run"
cd "$pki"

# Pods reach the API server where the node is; without a node it is nobody's business but this machine's.
address=127.0.0.1
if [ "${1:-}" != --bare ] && with_node; then
  address=$node_address
  ip address replace "$node_address/32" dev lo
fi

certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  printf 'keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 365 -extfile "$1.ext" 2>/dev/null
}
if [ ! -r complete ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 365 -subj /CN=kubernetes 2>/dev/null
  certificate apiserver /CN=kube-apiserver \
    "DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:localhost,IP:127.0.0.1,IP:$node_address,IP:$first_service"
  certificate admin /O=system:masters/CN=admin
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate kubelet "/O=system:nodes/CN=system:node:$node" "DNS:$node,IP:$node_address"
  certificate proxy /CN=system:kube-proxy
  openssl genrsa -out sa.key 2048 2>/dev/null
  openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
  : >complete
fi
for user in admin controllers scheduler kubelet proxy; do
  cat >"$kube/$user.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://$address:$port", certificate-authority: $pki/ca.crt}}]
users: [{name: $user, user: {client-certificate: $pki/$user.crt, client-key: $pki/$user.key}}]
contexts: [{name: real, context: {cluster: real, user: $user}}]
current-context: real
YAML
done

rm -rf "$run/etcd"
launch etcd "$kube/bin/etcd" --data-dir "$run/etcd" --unsafe-no-fsync \
  --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$((etcd_port + 1))" \
  --initial-cluster "default=http://127.0.0.1:$((etcd_port + 1))" --initial-advertise-peer-urls "http://127.0.0.1:$((etcd_port + 1))"
launch apiserver "$kube/bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --bind-address="$address" \
  --advertise-address="$node_address" --secure-port="$port" --client-ca-file=ca.crt \
  --tls-cert-file=apiserver.crt --tls-private-key-file=apiserver.key \
  --service-account-key-file=sa.pub --service-account-signing-key-file=sa.key \
  --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range="$services" \
  --kubelet-client-certificate=admin.crt --kubelet-client-key=admin.key --kubelet-preferred-address-types=InternalIP \
  --authorization-mode=Node,RBAC --allow-privileged=true
expect apiserver "kube-apiserver ready" kubectl get --raw /readyz
if [ "${1:-}" != --bare ]; then
  launch controllers "$kube/bin/kube-controller-manager" --kubeconfig="$kube/controllers.kubeconfig" --root-ca-file=ca.crt \
    --secure-port=$((port + 1)) --service-account-private-key-file=sa.key --use-service-account-credentials --leader-elect=false
  launch scheduler "$kube/bin/kube-scheduler" --kubeconfig="$kube/scheduler.kubeconfig" --secure-port=$((port + 2)) --leader-elect=false
  if with_node; then
    "$here/node.sh"
  else
    say "not root: a control plane without a node"
  fi
fi
say "Kubernetes $KUBE_VERSION runs: export KUBECONFIG=$KUBECONFIG"
