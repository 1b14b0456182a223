#!/bin/bash
# up.sh [--bare]: starts the control plane that build.sh built, on loopback, with an empty store; --bare leaves the
# controllers and the scheduler out, so that nothing but the caller writes. Does nothing when it runs already.
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

certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  printf 'keyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 365 -extfile "$1.ext" 2>/dev/null
}
if [ ! -r sa.pub ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 365 -subj /CN=kubernetes 2>/dev/null
  certificate apiserver /CN=kube-apiserver DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1
  certificate admin /O=system:masters/CN=admin
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  openssl genrsa -out sa.key 2048 2>/dev/null
  openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
fi
for user in admin controllers scheduler; do
  cat >"$kube/$user.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $pki/ca.crt}}]
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
# The service range is the one reserved for benchmarks: nothing real is shadowed.
launch apiserver "$kube/bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --bind-address=127.0.0.1 \
  --advertise-address=198.18.0.1 --secure-port="$port" --client-ca-file=ca.crt \
  --tls-cert-file=apiserver.crt --tls-private-key-file=apiserver.key \
  --service-account-key-file=sa.pub --service-account-signing-key-file=sa.key \
  --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=198.19.0.0/22 \
  --authorization-mode=Node,RBAC --allow-privileged=true
for _ in $(seq 300); do
  kubectl get --raw /readyz >/dev/null 2>&1 && break
  kill -0 "$(cat "$run/apiserver.pid")" 2>/dev/null || { tail -n 5 "$run/apiserver.log" >&2; die "kube-apiserver ended; $run/apiserver.log says why"; }
  sleep 0.2
done
kubectl get --raw /readyz >/dev/null || die "kube-apiserver was not ready within 60 s; see $run/apiserver.log"
if [ "${1:-}" != --bare ]; then
  launch controllers "$kube/bin/kube-controller-manager" --kubeconfig="$kube/controllers.kubeconfig" --root-ca-file=ca.crt \
    --service-account-private-key-file=sa.key --use-service-account-credentials --leader-elect=false
  launch scheduler "$kube/bin/kube-scheduler" --kubeconfig="$kube/scheduler.kubeconfig" --leader-elect=false
fi
say "Kubernetes $KUBE_VERSION runs: export KUBECONFIG=$KUBECONFIG"
