#!/bin/bash
# generate.sh [--check]: rewrites the generated files; with --check, fails when that changes any.
# A crate that generates files has an example or program named `generate` that writes them.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
generators=(crates/*/examples/generate.rs examples/*/examples/generate.rs)
for generator in "${generators[@]}"; do
  [ -e "$generator" ] || continue
  crate=$(basename "$(dirname "$(dirname "$generator")")")
  cargo run --quiet --locked -p "$crate" --example generate
done
# With the features of the whole workspace, so that it comes out of the same build as the tests.
cargo build --quiet --workspace --all-features --locked --example manifests
"${CARGO_TARGET_DIR:-target}/debug/examples/manifests"
[ "${1:-}" = --check ] || exit 0
changed=$(git status --porcelain -- deploy docs examples)
[ -z "$changed" ] || die "generated files differ from their sources; run make generate and commit:"$'\n'"$changed"
say "generated files are what their sources say"
