#!/bin/bash
# msrv.sh: that kube-status builds with the Rust it states. With that toolchain installed the build is the proof;
# without it there is what clippy says, which compares every use of the standard library with the stated version.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
stated=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$stated" ] || die "Cargo.toml states no rust-version"
if rustup toolchain list 2>/dev/null | grep -q "^$stated"; then
  cargo "+$stated" check --package kube-status --features client,k8s-openapi/v1_34 --locked
  say "kube-status builds with Rust $stated"
else
  say "Rust $stated is not installed (rustup toolchain install $stated): judged by clippy's incompatible_msrv in make lint alone"
fi
