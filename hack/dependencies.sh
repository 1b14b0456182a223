#!/bin/bash
# dependencies.sh: licences, bans, sources and advisories by the rules of deny.toml; and a line in docs/dependencies.md for every
# dependency. cargo-deny judges: one on PATH, else one built into the cache. Advisories count where their database can be
# reached; where it cannot, that is said.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
database=https://github.com/rustsec/advisory-db
bad=0

cargo_program cargo-deny 0.20.2
"$cargo_program" --locked check licenses bans sources || bad=$((bad + 1))
if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --quiet "$database" HEAD >/dev/null 2>&1; then
  "$cargo_program" --locked check advisories || bad=$((bad + 1))
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
