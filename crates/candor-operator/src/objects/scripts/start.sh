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
trap 'exit 143' TERM INT
guard
trap - TERM INT

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
