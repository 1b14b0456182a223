# The Valkey and Redis servers that pods run: found on PATH, built, or taken from Debian's binary packages.
# Each lands in $cache/servers/NAME-VERSION/bin; nothing is installed in the system.
# Source it after lib.sh and apt.sh.

servers=$cache/servers

# server_version PROGRAM: 9.1.2, from the program's own words.
server_version() { "$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9.]*\).*/\1/p'; }

# name_valkey VERSION: the server that an unnamed version means, and its generation.
name_valkey() {
  ln -sfn "valkey-$1" "$servers/valkey"
  ln -sfn "valkey-$1" "$servers/valkey-${1%.*}"
}

# valkey_from_path: a server that the user has, as a folder of links.
valkey_from_path() {
  local program version into
  program=$(command -v valkey-server) || return 1
  version=$(server_version "$program")
  [ -n "$version" ] || return 1
  into=$servers/valkey-$version
  [ -x "$into/bin/valkey-server" ] || {
    mkdir -p "$into/bin"
    for name in valkey-server valkey-cli valkey-benchmark; do
      program=$(command -v "$name") && ln -sf "$(readlink -f "$program")" "$into/bin/$name"
    done
  }
  name_valkey "$version"
}

# openssl_for_build: flags that let make find OpenSSL's headers; fetched into the cache where libssl-dev is not
# installed. Only the static libraries are kept, so that the linker takes those and the result runs anywhere.
openssl_for_build() {
  local root=$cache/openssl triplet
  [ -r /usr/include/openssl/ssl.h ] && return 0
  triplet=$(gcc -print-multiarch 2>/dev/null || cc -print-multiarch)
  if [ ! -r "$root/include/openssl/ssl.h" ]; then
    rm -rf "$root" "$root.raw"
    apt_update "$(debian_release)" >&2 && apt_unpack "$(debian_release)" "$root.raw" libssl-dev >&2 || return 1
    mkdir -p "$root/lib"
    cp -r "$root.raw/usr/include" "$root/include"
    cp -r "$root/include/$triplet/openssl/." "$root/include/openssl/"
    cp "$root.raw/usr/lib/$triplet/"lib{ssl,crypto}.a "$root/lib/"
    rm -rf "$root.raw"
  fi
  echo "OPENSSL_PREFIX=$root"
}

# build_server NAME SOURCE FLAGS...: compiles an unpacked source tree.
build_server() {
  local name=$1 source=$2
  shift 2
  make -C "$source/src" -j "$(nproc)" MALLOC=jemalloc USE_SYSTEMD=no OPTIMIZATION=-O2 "$@" "$name-server" "$name-cli" "$name-benchmark"
}

# server_from_source NAME: the newest valkey or redis of Debian's sid, built here (its binaries want a newer libc than
# Debian 12). Sets built_version.
server_from_source() {
  local name=$1 work version flags tls=(BUILD_TLS=yes) into source
  command -v cc >/dev/null || { say "building $name needs a C compiler: install gcc (and make)"; return 1; }
  step "package lists of Debian sid" apt_update sid || return 1
  version=$(apt_in sid apt-cache showsrc "$name" | sed -n 's/^Version: \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p' | sort -V | tail -n 1)
  [ -n "$version" ] || return 1
  into=$servers/$name-$version
  if [ ! -x "$into/bin/$name-server" ]; then
    work=$(mktemp -d "$cache/build.XXXXXX")
    (cd "$work" && step "source of $name $version" apt_in sid apt-get source --download-only "$name") &&
      mkdir "$work/source" && tar -xf "$work/$name"_*.orig.tar.* -C "$work/source" --strip-components=1 ||
      { rm -rf "$work"; return 1; }
    if flags=$(openssl_for_build); then
      [ -z "$flags" ] || tls+=("$flags")
    else
      say "building $name without TLS: OpenSSL's headers are neither installed nor to be had (install libssl-dev)"
      tls=(BUILD_TLS=no)
    fi
    source=$work/source
    step "building $name $version (${tls[0]}), about 80 s on 2 cores" build_server "$name" "$source" "${tls[@]}" ||
      { rm -rf "$work"; return 1; }
    mkdir -p "$into.new/bin"
    strip -o "$into.new/bin/$name-server" "$source/src/$name-server" 2>/dev/null || cp "$source/src/$name-server" "$into.new/bin/"
    cp "$source/src/$name-cli" "$source/src/$name-benchmark" "$into.new/bin/"
    rm -rf "$into" "$work"
    mv "$into.new" "$into"
  fi
  built_version=$version
}

# valkey_from_source: the Valkey that an unnamed version means.
valkey_from_source() {
  local built_version
  server_from_source valkey && name_valkey "$built_version"
}

# redis_from_source: the newest Redis, by its major version.
redis_from_source() {
  local built_version
  server_from_source redis && ln -sfn "redis-$built_version" "$servers/redis-${built_version%%.*}"
}

# server_from_debian SUITE NAME: a server's binary packages with the libraries the system may lack, behind small
# wrappers that find those libraries. The libraries come from the release the packages were built for.
server_from_debian() {
  local suite=$1 name=$2 base=${1%-backports} version into libraries
  apt_update "$suite" && { [ "$suite" = "$base" ] || apt_update "$base"; } || return 1
  version=$(apt_in "$suite" apt-cache policy "$name-server" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p')
  [ -n "$version" ] || { say "Debian's $suite has no $name-server"; return 1; }
  into=$servers/$name-$version
  if [ ! -x "$into/bin/$name-server" ]; then
    rm -rf "$into" "$into.new"
    apt_unpack "$suite" "$into.new" "$name-server" "$name-tools" &&
      apt_unpack "$base" "$into.new" libhiredis0.14 libjemalloc2 liblzf1 liblua5.1-0 lua-cjson lua-bitop libatomic1 \
        libsystemd0 libssl3 || return 1
    libraries=$(cd "$into.new" && find . -name '*.so.*' -printf '%h\n' | sort -u | sed 's|^\.|$here|' | paste -sd:)
    mkdir -p "$into.new/bin"
    for program in server cli benchmark; do
      # Relative to the wrapper itself, so that the folder may be shown to a pod under another name.
      printf '#!/bin/sh\nhere=${0%%/bin/*}\nLD_LIBRARY_PATH=%s exec "$here/usr/bin/%s" "$@"\n' \
        "$libraries" "$name-$program" >"$into.new/bin/$name-$program"
      chmod +x "$into.new/bin/$name-$program"
    done
    mv "$into.new" "$into"
    "$into/bin/$name-server" --version >/dev/null || { rm -rf "$into"; say "$name-server $version of $suite does not run here"; return 1; }
  fi
  ln -sfn "$name-$version" "$servers/$name-${version%.*}"
}

# image_map: which image name stands for which of these servers, in the form the sandbox's kubelet reads.
# A server must listen on its pod's loopback address; it gets the arguments here, so that no manifest knows of it.
# A server stands for the tags that its version has in the official image (9, 9.1, 9.1.2, with or without the base image);
# another tag fails as a pull does. The first entry that matches counts, so the newest server of a generation has its tag.
image_map() {
  local folder name version newest
  echo "# Written by hack/setup.sh."
  echo "images:"
  while read -r folder; do
    name=${folder%%-*} version=${folder#*-}
    image_entry "$name" "$version"
    image_tags "$name" "$version" "$version" "${version%.*}" "${version%%.*}"
  done < <(find "$servers" -mindepth 1 -maxdepth 1 -type d -name '*-[0-9]*[0-9]' -printf '%f\n' | sort -rV)
  newest=$(readlink "$servers/valkey") || return 0
  newest=${newest#valkey-}
  # 9.1 is the operator's default. Where there is no such server, the one that there is stands for it.
  echo "  - {<<: *valkey-$newest, match: \"*valkey:latest\"}"
  image_tags valkey "$newest" 9.1 9
  echo "  - {<<: *valkey-$newest, match: \"*valkey\"}"
}

# image_entry NAME VERSION: one server, under its full version.
image_entry() {
  local name=$1 version=$2
  cat <<YAML
  - &$name-$version
    match: "*$name:$version"
    binds:
      - {source: "$servers/$name-$version", target: /opt/$name}
    entrypoint: [docker-entrypoint.sh]
    args: [$name-server]
    workingDir: /data
    files:
      /usr/local/bin/docker-entrypoint.sh: |
        #!/bin/sh
        # As in the official image: options and configuration files are for the server.
        case "\${1:-}" in -* | *.conf) set -- $name-server "\$@" ;; esac
        exec "\$@"
    programs:
      - name: $name-server
        path: /opt/$name/bin/$name-server
        after: [--bind, \$POD_IP, --bind-source-addr, \$POD_IP, --cluster-announce-ip, \$POD_IP]
        plain: [--version, -v, --help, -h]
      - name: $name-cli
        path: /opt/$name/bin/$name-cli
        before: [-h, \$POD_IP]
        plain: [--version, -v, --help]
        replace: {localhost: \$POD_IP, 127.0.0.1: \$POD_IP}
      - name: $name-benchmark
        path: /opt/$name/bin/$name-benchmark
        before: [-h, \$POD_IP]
        plain: [--version, --help]
        replace: {localhost: \$POD_IP, 127.0.0.1: \$POD_IP}
YAML
}

# image_tags NAME VERSION TAG...: more tags of that server.
image_tags() {
  local name=$1 version=$2 tag base
  shift 2
  for tag in "$@"; do
    for base in "" "-alpine*" "-bookworm" "-trixie"; do
      echo "  - {<<: *$name-$version, match: \"*$name:$tag$base\"}"
    done
  done
}
