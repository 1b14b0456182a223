#!/bin/bash
# mutants.sh: changes the pure parts one expression at a time and lists the changes that no test notices. Arguments go to
# cargo-mutants (--re FILE, --shard 1/4, --list); .cargo/mutants.toml names the files. cargo-mutants is one on PATH, else one
# built into the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
cargo_program cargo-mutants 27.1.0
"$cargo_program" mutants --output "${CARGO_TARGET_DIR:-target}" "$@"
