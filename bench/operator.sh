#!/usr/bin/env bash
# Measures the operator beside a person's own way and writes docs/benchmarks.md. CANDOR_BENCH passes options on.
set -euo pipefail
cd "$(dirname "$0")/.."

# The program of the image: without the sandbox.
cargo build --locked --release --no-default-features --package candor --package operator-bench
built="${CARGO_TARGET_DIR:-target}/release"
read -ra more <<<"${CANDOR_BENCH:-}"
"$built/operator-bench" --candor "$built/candor" --out docs/benchmarks.md "${more[@]}"
