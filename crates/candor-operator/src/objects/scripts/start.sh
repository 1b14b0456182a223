#!/bin/sh
# start.sh CONFIGURATION [ARGUMENTS...]: becomes the server.
set -eu
. "$(dirname "$0")/lib.sh"
conf=$1
shift

# A server that knows how hands its shard over on SIGTERM, unless the configuration says otherwise.
if [ -z "$(value shutdown-on-sigterm "$conf")" ]; then
  case $("$family-server" --version) in
  "Valkey server v="[1-8].*) ;;
  "Valkey server v="*) set -- --shutdown-on-sigterm failover "$@" ;;
  esac
fi

exec "$family-server" "$conf" --cluster-announce-ip "$POD_IP" "$@"
