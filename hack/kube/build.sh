#!/bin/bash
# build.sh: a real Kubernetes from the Go module proxy: kube-apiserver, controller manager, scheduler and etcd; as root also
# what a node needs: kubelet and kube-proxy, and Debian's containerd, runc and network plugins, unpacked beside them.
# Six minutes on 2 cores, once; $KUBE_VERSION and $ETCD_VERSION choose others.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/../apt.sh"
. "$here/lib.sh"
lock kube
mkdir -p "$kube/bin" "$kube/src/kubernetes" "$kube/src/etcd"
programs=(kube-apiserver kube-controller-manager kube-scheduler)
if with_node; then programs+=(kubelet kube-proxy); fi

# Kubernetes requires its own staging modules at v0.0.0 and replaces them by folders of its tree; a consumer has to name
# the published version of each. Which ones there are is asked of Kubernetes' own go.mod.
kubernetes_module() {
  cd "$kube/src/kubernetes"
  local mod staging=v0.${KUBE_VERSION#1.}
  mod=$(cd "$kube/src" && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@v$KUBE_VERSION" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  [ -r "$mod" ] || { echo "no go.mod of k8s.io/kubernetes@v$KUBE_VERSION"; return 1; }
  {
    printf 'module controlplane\n\ngo %s\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$(sed -n 's/^go //p' "$mod")" "$KUBE_VERSION"
    sed -n 's|^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging/.*|\t\1 => \1 '"$staging"'|p' "$mod"
    printf ')\n'
  } >go.mod
  printf '//go:build tools\n\npackage controlplane\n\nimport (\n' >tools.go
  printf '\t_ "k8s.io/kubernetes/cmd/%s/app"\n' "${programs[@]}" >>tools.go
  printf ')\n' >>tools.go
  go mod tidy
}

# build_kubernetes PROGRAM...
build_kubernetes() {
  kubernetes_module
  cd "$kube/src/kubernetes"
  local version=k8s.io/component-base/version minor
  minor=$(cut -d. -f2 <<<"$KUBE_VERSION")
  go build -trimpath -o "$kube/bin/" \
    -ldflags "-s -w -X $version.gitVersion=v$KUBE_VERSION -X $version.gitMajor=1 -X $version.gitMinor=$minor" \
    "${@/#/k8s.io/kubernetes/cmd/}"
}

build_etcd() {
  cd "$kube/src/etcd"
  [ -r go.mod ] || go mod init etcd
  go get "go.etcd.io/etcd/server/v3@v$ETCD_VERSION"
  go build -trimpath -ldflags "-s -w" -o "$kube/bin/etcd" go.etcd.io/etcd/server/v3
}

unpack_node() {
  local suite
  suite=$(debian_release)
  rm -rf "$node_root" "$node_root.new"
  apt_update "$suite" && apt_unpack "$suite" "$node_root.new" containerd runc containernetworking-plugins libseccomp2 &&
    mv "$node_root.new" "$node_root"
}

missing=()
for program in "${programs[@]}"; do [ -x "$kube/bin/$program" ] || missing+=("$program"); done
if [ ${#missing[@]} -gt 0 ] || [ ! -x "$kube/bin/etcd" ]; then
  command -v go >/dev/null || die "building Kubernetes needs Go 1.24 or newer: install it so that go is on PATH"
fi
[ ${#missing[@]} -eq 0 ] || step "building ${missing[*]} of Kubernetes $KUBE_VERSION" build_kubernetes "${missing[@]}"
[ -x "$kube/bin/etcd" ] || step "building etcd $ETCD_VERSION" build_etcd
if with_node && [ ! -x "$node_root/usr/bin/containerd" ]; then
  step "containerd, runc and network plugins of Debian" unpack_node ||
    die "no containerd: this machine's Debian mirror must serve containerd, runc and containernetworking-plugins"
fi
