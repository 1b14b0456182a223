#!/bin/bash
# image.sh [IMAGE]: builds the Containerfile and holds the image to what is said of it: below 30 MB, nobody's user, no shell,
# and it runs with a read-only root, without a network and without any capability. With IMAGE only the second half.
# CANDOR_ENGINE is the engine with its options (podman unless said otherwise), CANDOR_RUN further options of its `run`,
# CANDOR_RUST_IMAGE the image to build in, by its digest for a release.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
read -ra engine <<<"${CANDOR_ENGINE:-podman}"
read -ra more <<<"${CANDOR_RUN:-}"
command -v "${engine[0]}" >/dev/null || die "no ${engine[0]}: install podman, or name another engine with CANDOR_ENGINE=docker"
image=${1:-}
if [ -z "$image" ]; then
  image=$(sed -n 's/^ *image: *\(candor:.*\)/\1/p' deploy/install.yaml | head -n 1)
  base=()
  [ -z "${CANDOR_RUST_IMAGE:-}" ] || base=(--build-arg "RUST_IMAGE=$CANDOR_RUST_IMAGE")
  step "$image" "${engine[@]}" build --file Containerfile "${base[@]}" --tag "$image" .
fi
said() { "${engine[@]}" image inspect --format "$1" "$image"; }
within() { "${engine[@]}" run --rm --read-only --network none --cap-drop ALL "${more[@]}" "$@"; }

size=$(said '{{.Size}}')
[ "$size" -lt 30000000 ] || die "$image has $size bytes, 30 MB are its limit"
user=$(said '{{.Config.User}}')
[ "$user" = 65532:65532 ] || die "$image runs as ${user:-root}"
version=$(within "$image" --version)
[ "$version" = "candor $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" ] || die "$image says of itself: $version"
for word in operator exporter install; do
  # To its end: an engine whose reader is gone fails.
  help=$(within "$image" "$word" --help)
  [[ $help = *"Usage: candor $word"* ]] || die "$image does not know candor $word"
done
[ "$(within "$image" install --render | grep -c '^kind: ')" -ge 10 ] || die "$image renders no manifests"
if within --entrypoint /bin/sh "$image" -c true >/dev/null 2>&1; then die "$image has a shell"; fi
say "$image: $version, $((size / 100000))00 kB, user $user, read-only root, no shell"
