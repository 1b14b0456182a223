#!/bin/sh
# start.sh CONFIGURATION [ARGUMENTS...]: becomes the server.
set -eu
here=$(dirname "$0")
. "$here/lib.sh"
. "$here/guard.sh"
conf=$1
shift
data=$(value dir "$conf")
nodes=$data/$(value cluster-config-file "$conf")
users=$(dirname "$(value aclfile "$conf")")
good=$data/last-good.conf
trap 'exit 143' TERM INT
guard
trap - TERM INT

# A member that ran must run again, whatever was written into the configuration since: with one that the server does not
# understand it runs on as it was, and the operator tells why. A last option that no server knows makes it read all
# others and end.
keep_good() {
  # A full disk must not keep a member from starting.
  cp "$conf" "$good" 2>/dev/null || rm -f "$good"
}
if [ -e "$good" ] && [ "$(cat "$conf")" != "$(cat "$good")" ]; then
  words=$("$family-server" "$conf" --candor-looks-no-further yes 2>&1) || true
  case $words in
  *"'candor-looks-no-further"*) keep_good ;;
  *)
    echo "start.sh: the configuration is not understood, the one before is used: $words"
    conf=$good
    ;;
  esac
else
  keep_good
fi

# A server that keeps a log looks for no other data. One that was told to keep a log only now finds its last save, and
# the operator turns the log on.
if [ "$(value appendonly "$conf")" = yes ] && [ "$(dataset)" = file ]; then
  set -- --appendonly no "$@"
fi

# A server that knows how hands its shard over on SIGTERM, unless the configuration says otherwise.
if [ -z "$(value shutdown-on-sigterm "$conf")" ]; then
  case $("$family-server" --version) in
  "Valkey server v="[1-8].*) ;;
  "Valkey server v="*) set -- --shutdown-on-sigterm failover "$@" ;;
  esac
fi

exec "$family-server" "$conf" --cluster-announce-ip "$POD_IP" "$@"
