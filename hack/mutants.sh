#!/bin/bash
# mutants.sh: changes the pure parts one expression at a time and lists the changes that no test notices. Arguments go to
# cargo-mutants (--re FILE, --shard 1/4, --list); .cargo/mutants.toml names the files. cargo-mutants is one on PATH, else one
# built into the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
version=27.1.0

mutants=$(command -v cargo-mutants || echo "$cache/cargo-mutants-$version/bin/cargo-mutants")
# Not optimised: it waits for cargo nearly all of the time.
build() {
  local folder
  folder=$(mktemp -d)
  CARGO_TARGET_DIR=$folder CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install cargo-mutants --version "$version" --locked --debug --root "$cache/cargo-mutants-$version"
  rm -rf "$folder"
}
if [ ! -x "$mutants" ]; then
  lock cargo-mutants
  [ -x "$mutants" ] || step "cargo-mutants $version" build || die "cargo-mutants could not be built"
fi

"$mutants" mutants --output "${CARGO_TARGET_DIR:-target}" "$@"
