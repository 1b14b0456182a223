# Source it after lib.sh. Which Helm the scripts use: one on PATH, else one that go builds into the cache.
HELM_VERSION=v3.18.6

# find_helm: sets $helm. Fails, and says why, where there is neither Helm nor a go to build it.
find_helm() {
  helm=$(command -v helm || echo "$cache/bin/helm")
  [ ! -x "$helm" ] || return 0
  command -v go >/dev/null || { say "there is neither helm nor a go to build it; install one of them"; return 1; }
  lock helm
  step "Helm $HELM_VERSION" env GOBIN="$cache/bin" go install "helm.sh/helm/v3/cmd/helm@$HELM_VERSION"
}
