#!/bin/bash
# pictures.sh [CANDOR]: makes docs/pictures anew: `candor status` and `candor top` of a cluster under writes while it is
# well, loses a primary, moves slots and needs a person, in a real terminal. Needs the program (cargo build -p candor) and what `make setup` brings.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
command -v tmux >/dev/null || die "pictures are taken in tmux: apt-get install tmux"
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin
program=${1:-}
[ -n "$program" ] || build_candor
set_stage
screen() { tmux -S "$folder/tmux" "$@"; }
finish() {
  screen kill-server 2>/dev/null || true
  end_stage
}
trap finish EXIT

start_sandbox --nodes 3 --zones a,b,c
start_operator --lease-namespace default --identity candor-0
kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: shop}
spec: {shards: 3, replicas: 1, exporter: {enabled: false}}
Y
within 120 "the cluster is Ready" kubectl wait --for=condition=Ready --timeout=1s vkc/shop
# Keys and writes in every slot, so that there is something to see and to move.
ip=$(kubectl get pods --selector valkey.io/cluster=shop --output jsonpath='{.items[0].status.podIP}')
"$cache/servers/valkey/bin/valkey-benchmark" -h "$ip" --cluster -t set -n 300000 -r 10000000 -d 100 -P 50 -q >/dev/null 2>&1 || true
"$program" audit shop --rate 800 >"$folder/audit" 2>&1 &
started+=("$!")

begin() {
  # A server that was just ended may still be there.
  within 10 "tmux starts" screen -f /dev/null new-session -d -x 110 -y 30 "$1; exec sleep 600"
  screen set-option -g status off
  screen resize-window -x 110 -y 30
}
keep() { screen capture-pane -p -e | hack/picture.py "$1" >"docs/pictures/$2.svg"; }
has() { screen capture-pane -p | grep -q "$1"; }

mkdir -p docs/pictures
begin "$program top shop"
within 120 "top sees every member" has "6 of 6 members answer"
sleep 3
keep "candor top shop" top
screen kill-server
begin "$program status shop --watch"
within 120 "status says Ready" has "Ready for"
keep "candor status shop --watch" status
kubectl delete pod --wait=false --selector valkey.io/cluster=shop,valkey.io/shard-index=1,valkey.io/node-index=0 >/dev/null
within 60 "status says that a member is lost" has "lost in shard 1"
keep "candor status shop --watch, a primary was deleted" failover
within 60 "status says Ready" has "Ready for"
kubectl scale vkc shop --replicas 5 >/dev/null
within 60 "status says that slots move" has "slots moved"
keep "candor status shop --watch, from 3 to 5 shards" moving
screen kill-server
kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: till}
spec: {shards: 1, replicas: 1, persistence: {size: 1Gi}, exporter: {enabled: false}}
Y
within 120 "the cluster is Ready" kubectl wait --for=condition=Ready --timeout=1s vkc/till
kubectl delete pvc --wait=false valkey-till-0-1-data >/dev/null
begin "$program status till --watch"
within 60 "status says what to do" has "To do"
keep "candor status till --watch, a volume claim was deleted" trouble
say "docs/pictures: $(ls docs/pictures | tr '\n' ' ')"
