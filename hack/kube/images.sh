#!/bin/bash
# images.sh [CANDOR]: makes the images that pods of the node run, from files of this machine, and hands them to containerd:
# the servers that `make setup` fetched, and, with a program given, candor itself. No registry is asked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
runs containerd >/dev/null || die "no node runs: hack/kube/up.sh starts one, as root"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# image ARGUMENTS...: as image.py, without the archive.
image() {
  "$here/image.py" "$folder/image.tar" "$@"
  ctr_here images import "$folder/image.tar" >/dev/null
  rm -f "$folder/image.tar"
}

# What a pod's sandbox runs: it holds the namespaces and buries orphans.
pause() {
  cat >"$folder/pause.c" <<'C'
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int number) { (void)number; _exit(0); }
static void bury(int number) { (void)number; while (waitpid(-1, NULL, WNOHANG) > 0) {} }

int main(void) {
  signal(SIGTERM, leave);
  signal(SIGINT, leave);
  signal(SIGCHLD, bury);
  for (;;) pause();
}
C
  gcc -static -Os -o "$folder/pause" "$folder/pause.c"
  image --name localhost/pause:candor --program "$folder/pause=/pause" --entrypoint '["/pause"]'
}

# server FAMILY FOLDER NAME...: a server as its official image has it: its programs on PATH, a shell, the entrypoint.
server() {
  local family=$1 from=$2 names=() tools=() tool
  shift 2
  [ -x "$from/bin/$family-server" ] || { say "no $family in $from: make setup fetches it"; return; }
  for name in "$@"; do names+=(--name "$name"); done
  for tool in cat chmod cp date dirname env head ls mkdir mv rm sed sleep timeout; do
    tools+=(--program "$(command -v "$tool")=/usr/bin/$tool")
  done
  image "${names[@]}" --tree "$from=/opt/$family" --program /bin/sh=/usr/bin/sh "${tools[@]}" \
    --folder /data=777 --folder /tmp=1777 --workdir /data --path "/opt/$family/bin:/usr/local/bin:/usr/bin:/bin" \
    --entrypoint '["/usr/local/bin/docker-entrypoint.sh"]' --text "/usr/local/bin/docker-entrypoint.sh=#!/bin/sh
case \"\${1:-}\" in '' | -* | *.conf) set -- $family-server \"\$@\" ;; esac
exec \"\$@\"
"
}

if [ $# -eq 0 ]; then
  say "images: servers"
  pause
  server valkey "$cache/servers/valkey-9.1" docker.io/valkey/valkey:9.1
  server valkey "$cache/servers/valkey-8.0" docker.io/valkey/valkey:8.0
  server redis "$cache/servers/redis-8" docker.io/library/redis:8 docker.io/library/redis:8.0 docker.io/library/redis:8-bookworm
  server redis "$cache/servers/redis-7.0" docker.io/library/redis:7.0
else
  [ -x "$1" ] || die "$1 is no program: cargo build --release -p candor makes one"
  say "images: candor of $1"
  image --name "${CANDOR_IMAGE:-docker.io/library/candor:local}" --program "$1=/usr/bin/candor" \
    --entrypoint '["/usr/bin/candor"]' --user 65532:65532
fi
