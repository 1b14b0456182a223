#!/bin/bash
# setup.sh [servers|redis8|older|kubectl|tmux|browser|nftables]...: what Candor's commands need beside cargo; without a word: servers and kubectl.
#
#   servers  a Valkey server: one on PATH, else the newest of Debian's sources built with TLS, else Debian's binary
#   redis8   Redis 8 built as Valkey is, the default of RedkeyClusters
#   older    Valkey 8.0 and Redis 7.0 from Debian 12's packages, and Redis 8, for tests of upgrades and of other servers
#   kubectl  one on PATH, else Debian's
#   tmux     one on PATH, else Debian's, for tests that drive a real terminal
#   browser  chromium and chromedriver on PATH, else Debian's; and axe-core by npm; for tests of the web page
#   nftables as root only, for tests of pods' networks
#
# Everything lands in a cache folder ($CANDOR_CACHE, else $XDG_CACHE_HOME/candor); nothing else is installed in the system,
# so root is not needed. A second run finds all of it and ends at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/apt.sh"
. "$here/servers.sh"
. "$here/browser.sh"

valkey() {
  [ -x "$servers/valkey/bin/valkey-server" ] && return
  valkey_from_path && return
  valkey_from_source && return
  say "Valkey could not be built; taking Debian's newest binary"
  for suite in "$(debian_release)" "$(debian_release)-backports" bookworm-backports; do
    if server_from_debian "$suite" valkey >/dev/null 2>&1; then
      name_valkey "$(server_version "$(ls -d "$servers"/valkey-[0-9]*.*.*/bin/valkey-server | sort -V | tail -n 1)")"
      return
    fi
  done
  die "no Valkey server: install one so that valkey-server is on PATH, or let this machine reach its Debian mirror"
}

older() {
  [ -x "$servers/valkey-8.0/bin/valkey-server" ] || step "Valkey 8.0 of Debian 12" server_from_debian bookworm-backports valkey ||
    die "no Valkey 8.0: this machine's Debian mirror must serve bookworm-backports"
  [ -x "$servers/redis-7.0/bin/redis-server" ] || step "Redis 7.0 of Debian 12" server_from_debian bookworm redis ||
    die "no Redis 7.0: this machine's Debian mirror must serve bookworm"
  redis8
}

redis8() {
  [ -x "$servers/redis-8/bin/redis-server" ] || redis_from_source ||
    die "no Redis 8: building it needs gcc, make and a Debian mirror that serves sid"
}

kubectl_program() {
  command -v kubectl >/dev/null && return
  [ -x "$cache/bin/kubectl" ] && return
  local suite
  mkdir -p "$cache/bin"
  for suite in sid trixie; do
    rm -rf "$cache/kubectl"
    if step "kubectl of Debian $suite" fetch_kubectl "$suite" && "$cache/kubectl/usr/bin/kubectl" version --client >/dev/null 2>&1; then
      mv "$cache/kubectl/usr/bin/kubectl" "$cache/bin/kubectl"
      rm -rf "$cache/kubectl"
      return
    fi
  done
  die "no kubectl: install one so that it is on PATH, or let this machine reach its Debian mirror"
}
# With the two libraries that only it needs, and a script that finds them.
tmux_program() {
  command -v tmux >/dev/null && return
  [ -x "$cache/bin/tmux" ] && return
  step "tmux of Debian $(debian_release)" fetch_tmux || die "no tmux: install one so that it is on PATH, or let this machine reach its Debian mirror"
  mkdir -p "$cache/bin"
  cat >"$cache/bin/tmux" <<SCRIPT
#!/bin/sh
LD_LIBRARY_PATH=\$(echo "$cache"/tmux/usr/lib/*-linux-gnu) exec "$cache/tmux/usr/bin/tmux" "\$@"
SCRIPT
  chmod +x "$cache/bin/tmux"
  "$cache/bin/tmux" -V >/dev/null || die "Debian's tmux does not run here: install one so that it is on PATH"
}
# Debian 13 gave one of the two another name.
fetch_tmux() {
  local release
  release=$(debian_release)
  apt_update "$release" || return 1
  apt_unpack "$release" "$cache/tmux" tmux libutempter0 libevent-core-2.1-7 ||
    apt_unpack "$release" "$cache/tmux" tmux libutempter0 libevent-core-2.1-7t64
}
# The one thing that is installed in the system, and only as root: the tests that silence and part pods need the kernel's
# packet rules.
nftables() {
  [ "$(id -u)" = 0 ] || return 0
  command -v nft >/dev/null && return
  step "nftables" install_nftables || die "no nft: install Debian's nftables, which the tests of pods' networks need as root"
}
install_nftables() { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nftables; }
fetch_kubectl() { apt_update "$1" && apt_unpack "$1" "$cache/kubectl" kubectl; }

[ $# -gt 0 ] || set -- servers kubectl
lock setup
mkdir -p "$servers"
for part in "$@"; do
  case $part in
    servers) valkey ;;
    redis8) redis8 ;;
    older) older ;;
    kubectl) kubectl_program ;;
    tmux) tmux_program ;;
    browser) browser ;;
    nftables) nftables ;;
    *) die "setup.sh knows servers, redis8, older, kubectl, tmux, browser and nftables, not $part" ;;
  esac
done
image_map >"$cache/images.yaml.new"
mv "$cache/images.yaml.new" "$cache/images.yaml"
