#!/bin/bash
# dependencies.sh: licences, bans, sources and advisories by the rules of deny.toml; and a line in docs/dependencies.md for every
# dependency. cargo-deny judges: one on PATH, else one built into the cache. Advisories count where their database can be
# reached; where it cannot, that is said.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
version=0.20.2
database=https://github.com/rustsec/advisory-db
bad=0

deny=$(command -v cargo-deny || echo "$cache/cargo-deny-$version/bin/cargo-deny")
# Not optimised: it runs for a second, and would take ten times as long to build.
build() {
  local folder
  folder=$(mktemp -d)
  CARGO_TARGET_DIR=$folder CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install cargo-deny --version "$version" --locked --debug --root "$cache/cargo-deny-$version"
  rm -rf "$folder"
}
if [ ! -x "$deny" ]; then
  lock cargo-deny
  [ -x "$deny" ] || step "cargo-deny $version" build || die "the dependencies cannot be judged without cargo-deny"
fi

"$deny" --locked check licenses bans sources || bad=$((bad + 1))
if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --quiet "$database" HEAD >/dev/null 2>&1; then
  "$deny" --locked check advisories || bad=$((bad + 1))
else
  say "advisories: not judged, $database cannot be reached"
fi

while read -r name; do
  grep -q "^| \`$name\`" docs/dependencies.md && continue
  say "docs/dependencies.md has no line for $name: why this one, what it replaces"
  bad=$((bad + 1))
done < <(awk '/^\[workspace.dependencies\]/ { on = 1; next } /^\[/ { on = 0 } on && /^[a-z]/ && !/path = / { print $1 }' Cargo.toml)

say "dependencies: $bad complaints"
[ "$bad" -eq 0 ]
