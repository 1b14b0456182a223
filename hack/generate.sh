#!/bin/bash
# generate.sh [--check]: rewrites the generated files; with --check, fails when that changes any.
# Each of these examples writes files of its crate's: definitions (candor-api), manifests (candor-operator), generate (the
# example operator).
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
generators=(definitions manifests generate)
# Together and with the features of the whole workspace, so that they come out of the same build as the tests.
cargo build --quiet --workspace --all-features --locked "${generators[@]/#/--example=}"
for generator in "${generators[@]}"; do
  "${CARGO_TARGET_DIR:-target}/debug/examples/$generator"
done
[ "${1:-}" = --check ] || exit 0
changed=$(git status --porcelain -- deploy docs examples)
[ -z "$changed" ] || die "generated files differ from their sources; run make generate and commit:"$'\n'"$changed"
say "generated files are what their sources say"
