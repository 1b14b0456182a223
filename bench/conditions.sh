#!/usr/bin/env bash
# Measures kube-status beside the Go packages of Cluster API: the same cases, the same machine, the same run.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null; then
    echo "bench/conditions.sh needs Go (1.26 or newer) to measure Go's condition packages: install it and run again." >&2
    exit 1
fi

target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target"
responder="$(cd "$target" && pwd)/conditions-responder"
(cd conformance/conditions && go build -o "$responder" .)
cargo run --quiet --release --package conditions-diff -- --responder "$responder" bench
