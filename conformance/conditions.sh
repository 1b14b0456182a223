#!/usr/bin/env bash
# Compares kube-status with the Go packages of Cluster API and apimachinery on random cases, string for string.
# Arguments go to the comparison: --cases, --seed, --generation, --only.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null; then
    echo "conformance/conditions.sh needs Go (1.26 or newer) to ask Go's condition packages: install it and run again." >&2
    exit 1
fi

responder="${CARGO_TARGET_DIR:-target}/conditions-responder"
mkdir -p "$(dirname "$responder")"
responder="$(cd "$(dirname "$responder")" && pwd)/conditions-responder"
(cd conformance/conditions && go build -o "$responder" .)
cargo run --quiet --package conditions-diff -- --responder "$responder" compare "$@"
