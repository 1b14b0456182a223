#!/bin/bash
# msrv.sh: that kube-status builds with the Rust it states. The toolchain is fetched where rustup can, and the build is
# the proof; where it cannot there is what clippy says, which compares every use of the standard library with the
# stated version.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
stated=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$stated" ] || die "Cargo.toml states no rust-version"
installed() { rustup toolchain list 2>/dev/null | grep -q "^$stated"; }
installed || timeout 120 rustup toolchain install "$stated" --profile minimal --no-self-update >/dev/null 2>&1 || true
if installed; then
  cargo "+$stated" check --package kube-status --features client,k8s-openapi/v1_34 --locked
  say "kube-status builds with Rust $stated"
else
  say "Rust $stated cannot be fetched (rustup toolchain install $stated): judged by clippy's incompatible_msrv in make lint alone"
fi
