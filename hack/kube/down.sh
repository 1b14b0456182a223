#!/bin/bash
# down.sh: ends what up.sh started, and waits for it; an API server may take a while to say goodbye.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
for name in scheduler controllers apiserver etcd; do
  pid=$(cat "$run/$name.pid" 2>/dev/null) || continue
  # A pid file may outlive a reboot: only our own program is ended.
  if [ "$(readlink -f "/proc/$pid/exe" 2>/dev/null)" = "$(readlink -f "$kube/bin/"*"${name/controllers/controller-manager}" | head -n 1)" ]; then
    kill "$pid" 2>/dev/null
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
    kill -9 "$pid" 2>/dev/null
  fi
  rm -f "$run/$name.pid"
done
true
