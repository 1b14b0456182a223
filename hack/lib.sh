# Shared by the scripts of this folder: where things are kept, one lock, progress of long steps.
# Source it; it runs nothing.

# One cache for all clones of a user, so that a server is built once. CANDOR_CACHE overrides it.
cache=${CANDOR_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME, or CANDOR_CACHE}/.cache}/candor}

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Two runs at once (a test run beside `make run`) must not build into the same folder.
lock() {
  mkdir -p "$cache"
  exec 9>"$cache/$1.lock"
  flock -n 9 || { say "waiting for another run that holds $cache/$1.lock"; flock 9; }
}

# step WORDS COMMAND...: runs a long command with its output in a log, says every few seconds that it lives,
# and shows the end of the log when it failed.
step() {
  local words=$1 log started now status=0 every=5
  shift
  mkdir -p "$cache/logs"
  log=$(mktemp "$cache/logs/step.XXXXXX")
  started=$SECONDS
  say "$words ..."
  "$@" >"$log" 2>&1 &
  local pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    now=$((SECONDS - started))
    if [ "$now" -ge "$every" ]; then
      say "  $now s: $(tail -n 1 "$log" | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' | cut -c1-100)"
      every=$((every + 5))
    fi
  done
  wait "$pid" || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 25 "$log" >&2
    say "$words: failed with $status after $((SECONDS - started)) s; the whole log is $log"
    return "$status"
  fi
  rm -f "$log"
  say "$words: done in $((SECONDS - started)) s"
}

# cargo_program NAME VERSION: sets $cargo_program to a cargo subcommand: one on PATH, else one built into the cache. Not
# optimised: it runs for seconds or waits for cargo, and would take ten times as long to build.
cargo_program() {
  local root="$cache/$1-$2"
  cargo_program=$(command -v "$1" || echo "$root/bin/$1")
  if [ -x "$cargo_program" ]; then return; fi
  lock "$1"
  [ -x "$cargo_program" ] || step "$1 $2" build_cargo_program "$1" "$2" "$root" || die "$1 could not be built"
}

build_cargo_program() {
  local folder
  folder=$(mktemp -d)
  CARGO_TARGET_DIR=$folder CARGO_PROFILE_DEV_DEBUG=0 cargo install "$1" --version "$2" --locked --debug --root "$3"
  rm -rf "$folder"
}
