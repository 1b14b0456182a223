#!/bin/bash
# chart.sh: lints the Helm chart and holds what it renders against what `candor install --render` writes with the same
# choices. Helm is one on PATH, else built into the cache by go.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/helm.sh
find_helm || die "the chart cannot be checked without Helm"
"$helm" lint --strict deploy/chart
# With the features of the whole workspace, so that both come out of the same build as the tests.
cargo build --quiet --workspace --all-features --locked --bin candor --example same_objects
built=${CARGO_TARGET_DIR:-target}/debug
program=$built/candor
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A Helm that go built takes every cluster for Kubernetes 1.20 unless told.
render() { "$helm" template candor deploy/chart --kube-version 1.29.0 --namespace candor "$@"; }

# same WORDS CHOICES-OF-HELM -- CHOICES-OF-INSTALL: both render the same objects. Two things differ on purpose: Helm makes
# the namespace itself, and its definitions carry the mark that keeps them.
same() {
  local words=$1 of_helm=()
  shift
  while [ "$1" != -- ]; do of_helm+=("$1"); shift; done
  shift
  render "${of_helm[@]}" >"$folder/helm.yaml"
  "$program" install --render "$@" >"$folder/install.yaml"
  "$built/examples/same_objects" "$folder/helm.yaml" "$folder/install.yaml" || die "the chart differs from candor install: $words"
  say "the chart is what candor install renders: $words"
}
same "as it comes" --
same "two namespaces" --set 'watchNamespaces={shop,bank}' -- --watch-namespaces shop,bank
same "everything" --set replicas=3,image.repository=r/candor --set-string image.tag=9 \
  --set metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true \
  --set networkPolicy.enabled=true,podDisruptionBudget.enabled=true -- \
  --replicas 3 --image r/candor:9 --service-monitor --pod-monitor --network-policy --pod-disruption-budget
same "monitors of two namespaces" --set 'watchNamespaces={shop,bank}' --set metrics.podMonitor.enabled=true -- \
  --watch-namespaces shop,bank --pod-monitor
same "without definitions" --set crds.install=false -- --no-definitions
same "a lower limit of members" --set maxMembers=60 -- --max-members 60
same "without the admission policy" --set admissionPolicy.enabled=false -- --no-admission-policy

same "the web page" --set web.enabled=true -- --web
same "the web page under a name" --set web.enabled=true,web.host=candor.example -- --web --web-host candor.example

# The schema refuses what nobody reads.
for wrong in replica=3 replicas=many maxMembers=0 image.pullPolicy=Sometimes 'watchNamespaces={Shop}' 'web.enabled=true,watchNamespaces={shop}'; do
  if render --set "$wrong" >/dev/null 2>&1; then die "values.schema.json lets $wrong pass"; fi
done
# What has no counterpart must at least be what was said.
render --set 'nodeSelector.disk=ssd,tolerations[0].key=a,priorityClassName=high' \
  --set 'imagePullSecrets[0].name=pull,log=debug' >"$folder/helm.yaml"
for line in 'disk: ssd' '- key: a' 'priorityClassName: high' '- name: pull' 'value: "debug"'; do
  grep -q -- "$line" "$folder/helm.yaml" || die "the chart does not say $line"
done
say "the chart's schema and its other values do what they say"
