#!/bin/bash
# chart.sh: lints the Helm chart and holds what it renders against what `candor install --render` writes with the same
# choices. Helm is one on PATH, else built into the cache by go.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
HELM_VERSION=v3.18.6
helm=$(command -v helm || echo "$cache/bin/helm")
if [ ! -x "$helm" ]; then
  command -v go >/dev/null || die "the chart cannot be checked: there is neither helm nor a go to build it; install one of them"
  lock helm
  step "Helm $HELM_VERSION" env GOBIN="$cache/bin" go install "helm.sh/helm/v3/cmd/helm@$HELM_VERSION" ||
    die "the chart cannot be checked: Helm could not be built"
fi
"$helm" lint --strict deploy/chart
cargo build --quiet --locked -p candor --bin candor
cargo build --quiet --locked -p candor-operator --example same_objects
built=${CARGO_TARGET_DIR:-target}/debug
program=$built/candor
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# same WORDS CHOICES-OF-HELM -- CHOICES-OF-INSTALL: both render the same objects. Two things differ on purpose: Helm makes
# the namespace itself, and its definitions carry the mark that keeps them.
same() {
  local words=$1 of_helm=()
  shift
  while [ "$1" != -- ]; do of_helm+=("$1"); shift; done
  shift
  "$helm" template candor deploy/chart --namespace candor "${of_helm[@]}" >"$folder/helm.yaml"
  "$program" install --render "$@" >"$folder/install.yaml"
  "$built/examples/same_objects" "$folder/helm.yaml" "$folder/install.yaml" || die "the chart differs from candor install: $words"
  say "the chart is what candor install renders: $words"
}
same "as it comes" --
same "two namespaces" --set 'watchNamespaces={shop,bank}' -- --watch-namespaces shop,bank
same "everything" --set replicas=3,image.repository=r/candor,image.tag=9 \
  --set metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true \
  --set networkPolicy.enabled=true,podDisruptionBudget.enabled=true -- \
  --replicas 3 --image r/candor:9 --service-monitor --pod-monitor --network-policy --pod-disruption-budget
same "monitors of two namespaces" --set 'watchNamespaces={shop,bank}' --set metrics.podMonitor.enabled=true -- \
  --watch-namespaces shop,bank --pod-monitor
same "without definitions" --set crds.install=false -- --no-definitions

# The schema refuses what nobody reads.
for wrong in replica=3 replicas=many image.pullPolicy=Sometimes 'watchNamespaces={Shop}'; do
  if "$helm" template candor deploy/chart --set "$wrong" >/dev/null 2>&1; then die "values.schema.json lets $wrong pass"; fi
done
# What has no counterpart must at least be what was said.
"$helm" template candor deploy/chart --set 'nodeSelector.disk=ssd,tolerations[0].key=a,priorityClassName=high' \
  --set 'imagePullSecrets[0].name=pull,log=debug' >"$folder/helm.yaml"
for line in 'disk: ssd' '- key: a' 'priorityClassName: high' '- name: pull' 'value: "debug"'; do
  grep -q -- "$line" "$folder/helm.yaml" || die "the chart does not say $line"
done
say "the chart's schema and its other values do what they say"
