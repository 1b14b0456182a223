#!/bin/bash
# pictures.sh [CANDOR]: makes docs/pictures anew: `candor status` and `candor top` of a living cluster under writes, in
# a real terminal. Needs the program (cargo build -p candor) and what `make setup` brings.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
command -v tmux >/dev/null || die "pictures are taken in tmux: apt-get install tmux"
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin
program=${1:-}
if [ -z "$program" ]; then
  cargo build --locked -p candor
  program=$(realpath "${CARGO_TARGET_DIR:-target}/debug/candor")
fi
folder=$(mktemp -d)
export KUBECONFIG=$folder/kubeconfig
started=()
finish() {
  trap - EXIT INT TERM HUP
  tmux -S "$folder/tmux" kill-server 2>/dev/null || true
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap finish EXIT
until_so() {
  local deadline=$((SECONDS + 120))
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || die "not within 120 s: $*"
    sleep 0.1
  done
}

"$program" sandbox --nodes 3 --zones a,b,c --kubeconfig "$KUBECONFIG" >"$folder/out" 2>"$folder/log" &
started+=("$!")
until_so grep -q KUBECONFIG "$folder/out"
kubectl apply --filename deploy/crds >/dev/null
kubectl wait --for=condition=Established --timeout=30s --filename deploy/crds >/dev/null
"$program" operator --lease-namespace default --identity candor-0 >"$folder/operator.log" 2>&1 &
started+=("$!")
kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: shop}
spec: {shards: 3, replicas: 1, exporter: {enabled: false}}
Y
until_so kubectl wait --for=condition=Ready --timeout=1s vkc/shop
# Writes to every slot, so that there is something to see and to move.
"$program" audit shop --rate 800 >"$folder/audit" 2>&1 &
started+=("$!")

screen() { tmux -S "$folder/tmux" "$@"; }
begin() {
  screen -f /dev/null new-session -d -x 110 -y 30 "$1; exec sleep 600"
  screen set-option -g status off
  screen resize-window -x 110 -y 30
}
keep() { screen capture-pane -p -e | hack/picture.py "$1" >"docs/pictures/$2.svg"; }
has() { screen capture-pane -p | grep -q "$1"; }

mkdir -p docs/pictures
begin "$program top shop"
until_so has "6 of 6 members answer"
sleep 3
keep "candor top shop" top
screen kill-server
begin "$program status shop --watch"
until_so has "Ready for"
keep "candor status shop --watch" status
say "docs/pictures: $(ls docs/pictures | tr '\n' ' ')"
