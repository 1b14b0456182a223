#!/bin/bash
# web-pictures.sh [FOLDER [webp|png]]: pictures of the web page into docs/pictures/web: all clusters, and one that is scaled
# under writes, at three widths, light and dark. Real servers. Needs what `make setup` brings.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
servers=$cache/servers
hack/setup.sh servers redis8 kubectl browser
PATH=$PATH:$cache/bin
into=${1:-docs/pictures/web}
mkdir -p "$into"
build_candor
set_stage
start_sandbox --nodes 3 --zones a,b,c
start_operator --lease-namespace default --identity candor-0
"$program" web --listen 127.0.0.1:0 >"$folder/web.out" 2>"$folder/web.log" &
started+=("$!")
chromedriver --port=0 >"$folder/driver" 2>&1 &
started+=("$!")
kubectl create namespace bank >/dev/null
kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: shop}
spec: {shards: 3, replicas: 1, exporter: {enabled: false}, config: {maxmemory: 128mb}}
---
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: ledger, namespace: bank}
spec: {shards: 1, replicas: 1, exporter: {enabled: false}}
---
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: search}
spec: {shards: 1, image: "valkey:does-not-exist", exporter: {enabled: false}}
---
apiVersion: redkey.inditex.dev/v1
kind: RedkeyCluster
metadata: {name: sessions}
spec: {primaries: 3, replicasPerPrimary: 0, ephemeral: true}
Y
within 120 "the cluster is Ready" kubectl wait --for=condition=Ready --timeout=1s vkc/shop
ip=$(kubectl get pods --selector valkey.io/cluster=shop --output jsonpath='{.items[0].status.podIP}')
"$servers/valkey/bin/valkey-benchmark" -h "$ip" --cluster -t set -n 300000 -r 10000000 -d 100 -P 50 -q >/dev/null 2>&1 || true
"$program" audit shop --rate 800 >"$folder/audit" 2>&1 &
started+=("$!")
within 20 "the page is served" grep -qs http "$folder/web.out"
within 20 "the browser's driver runs" grep -qs 'on port' "$folder/driver"
port=$(sed -n 's/.*successfully on port \([0-9]*\).*/\1/p' "$folder/driver")
# Some minutes of history, and keys in every slot.
sleep "${CANDOR_PICTURES_AFTER:-60}"
hack/web-pictures.py "$port" "$(grep -o 'http://[^ ]*' "$folder/web.out")" "$into" "${2:-webp}"
say "$into: $(du -sh "$into" | cut -f1)"
