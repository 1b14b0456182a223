#!/bin/bash
# install-three-ways.sh [CANDOR]: installs the operator on a sandbox by kubectl, by the program and by Helm, one after the
# other and as docs/install.md says: its Deployment becomes available, a cluster becomes Ready and answers, `candor doctor`
# finds nothing to mend, installing again changes nothing, and after the page's uninstall every object that was not there before is gone.
# Without CANDOR the program is built first. Helm's part is left out, with a word, where there is neither Helm nor go.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
. hack/helm.sh
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin
program=${1:-}
[ -n "$program" ] || build_candor
set_stage
finish() {
  if [ "$?" != 0 ]; then
    kubectl get valkeyclusters,pods --all-namespaces >&2 || true
    kubectl --namespace candor logs deployment/candor-operator --tail 20 >&2 || true
    cat "$folder/difference" >&2 2>/dev/null || true
  fi
  end_stage
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
start_sandbox --nodes 3 --zones a,b,c

# Every object of every kind but events, which outlive what they tell of.
objects() {
  local kinds
  kinds=$(kubectl api-resources --verbs=list --output name | grep -v '^events' | paste -sd,)
  kubectl get "$kinds" --all-namespaces --no-headers \
    --output custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name | sort
}
as_before() {
  objects >"$folder/after" 2>/dev/null
  diff "$folder/before" "$folder/after" >"$folder/difference"
}

# Each way as the page says it; also how one upgrades, so that it may be done again.
by_kubectl() { kubectl apply --server-side --filename deploy/install.yaml; }
by_candor() { "$program" install; }
by_helm() { "$helm" upgrade --install candor deploy/chart --namespace candor --create-namespace; }

generation() { kubectl --namespace candor get deployment candor-operator --output jsonpath='{.metadata.generation}'; }

# works WAY COMMAND: the operator that the command installs is up, and does what it is for.
works() {
  "$2" >/dev/null
  kubectl --namespace candor wait deployment/candor-operator --for=condition=Available --timeout=60s >/dev/null
  local before
  before=$(generation)
  "$2" >/dev/null
  [ "$(generation)" = "$before" ] || die "$1: installing again changed the Deployment"
  kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata:
  name: small
spec:
  shards: 3
  replicas: 1
Y
  kubectl wait vkc/small --for=condition=Ready --timeout=120s >/dev/null
  [ "$(kubectl exec deploy/valkey-small-0-0 -c server -- valkey-cli -c set greeting "$1")" = OK ] || die "$1: the cluster takes no key"
  [ "$(kubectl exec deploy/valkey-small-2-1 -c server -- valkey-cli -c get greeting)" = "$1" ] || die "$1: the key is not there"
  "$program" doctor >"$folder/doctor" || { cat "$folder/doctor" >&2; die "$1: candor doctor finds something to mend"; }
  if grep -v '^ok ' "$folder/doctor" >&2; then die "$1: candor doctor warns"; fi
  say "$1: $(kubectl --namespace candor get pods --no-headers | awk '{print $1, $3}'); $("$program" status small | head -n 1)"
  kubectl delete vkc small --timeout=90s >/dev/null
}
# gone WAY: nothing is left that was not there before.
gone() {
  within 60 "$1: nothing is left" as_before
  say "$1: uninstalled, all $(wc -l <"$folder/before") objects are those from before"
}
definitions=(crd valkeyclusters.valkey.io valkeynodes.valkey.io redkeyclusters.redkey.inditex.dev)

within 10 "the sandbox's own objects are there" sh -c '[ "$(kubectl get serviceaccounts --all-namespaces --no-headers | wc -l)" -ge 4 ]'
objects >"$folder/before"

way="kubectl apply"
works "$way" by_kubectl
kubectl delete --ignore-not-found --filename deploy/install.yaml >/dev/null
gone "$way"

way="candor install"
works "$way" by_candor
"$program" install --render --no-definitions | kubectl delete --ignore-not-found --filename - >/dev/null
kubectl delete "${definitions[@]}" >/dev/null
gone "$way"

way="helm install"
if find_helm; then
  works "$way" by_helm
  "$helm" uninstall candor --namespace candor >/dev/null 2>&1
  kubectl get "${definitions[@]}" >/dev/null || die "$way: uninstalling took the definitions along"
  kubectl delete "${definitions[@]}" >/dev/null
  kubectl delete namespace candor >/dev/null
  gone "$way"
else
  say "$way: left out"
fi
