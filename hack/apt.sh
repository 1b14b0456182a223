# Debian packages without installing any: apt with a state of its own, fed from the machine's own mirror.
# Nothing of the system's apt is read but its sources, and nothing of it is written; no root is needed.
# Source it after lib.sh.

# The mirror this machine uses for its own release, whatever the form of its sources.
debian_mirror() {
  local release
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$release" '$2 == release && $1 ~ /debian\/?$/ { print $1; exit }'
}

debian_release() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

# apt_in SUITE TOOL...: apt-get (or apt-cache) that knows one suite only.
apt_in() {
  local suite=$1 tool=$2
  shift 2
  "$tool" -q -c "$cache/apt/$suite/apt.conf" "$@"
}

# apt_update SUITE: fetches the lists of one suite into its own state.
apt_update() {
  local suite=$1 state=$cache/apt/$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null || { say "apt-get is not here: this is not a Debian"; return 1; }
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || { say "apt knows no Debian mirror for $(debian_release): add one to the machine's sources"; return 1; }
  [ -r "$keyring" ] || { say "$keyring is missing: install debian-archive-keyring"; return 1; }
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : >"$state/status"
  # Read after the system's configuration: its proxies hold, its hooks (which clean the system's cache) do not.
  cat >"$state/apt.conf" <<CONF
#clear APT::Update;
#clear DPkg::Post-Invoke;
Dir::State "$state";
Dir::State::lists "$state/lists";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
  for kind in deb deb-src; do echo "$kind [signed-by=$keyring] $mirror $suite main"; done >"$state/sources.list"
  apt_in "$suite" apt-get update
}

# apt_unpack SUITE INTO PACKAGE...: the files of binary packages, under a folder.
apt_unpack() {
  local suite=$1 into=$2 work
  shift 2
  mkdir -p "$into"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  (cd "$work" && apt_in "$suite" apt-get download "$@") || { rm -rf "$work"; return 1; }
  for package in "$work"/*.deb; do dpkg-deb -x "$package" "$into" || { rm -rf "$work"; return 1; }; done
  rm -rf "$work"
}

# apt_unpack_all SUITE INTO PACKAGE...: the same with everything that they depend on, except the C library: programs use
# the machine's own.
apt_unpack_all() {
  local suite=$1 into=$2 archives=$cache/apt/$1/cache/archives
  shift 2
  mkdir -p "$into"
  rm -f "$archives"/*.deb
  apt_in "$suite" apt-get install --yes --download-only --no-install-recommends "$@" || return 1
  rm -f "$archives"/{libc6,libc-bin,base-files,dpkg,perl-base,systemd}_*.deb
  for package in "$archives"/*.deb; do dpkg-deb -x "$package" "$into" || return 1; done
  rm -f "$archives"/*.deb
}
