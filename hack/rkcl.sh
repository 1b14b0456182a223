#!/bin/bash
# rkcl.sh apply|delete: applies or removes the sample RedkeyCluster, redis-cluster-ephemeral: in the cluster of KUBECONFIG,
# or else in the sandbox that `make run` started last.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
PATH=$PATH:$cache/bin
sample=examples/redkeycluster.yaml
if [ -z "${KUBECONFIG:-}" ]; then
  [ -r "$cache/run.kubeconfig" ] ||
    die "no sandbox runs: start one with make run KIND=redkey, or set KUBECONFIG to another cluster"
  export KUBECONFIG=$cache/run.kubeconfig
fi
case ${1:-} in
  apply)
    kubectl apply --filename "$sample"
    say "Watch it: kubectl get rkcl -w"
    ;;
  delete) kubectl delete --ignore-not-found --filename "$sample" ;;
  *) die "rkcl.sh knows apply and delete, not ${1:-nothing}" ;;
esac
