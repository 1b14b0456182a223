#!/bin/sh
# alive.sh [TRIES]: whether a server process answers at all: startup and liveness. One that loads, is busy, waits for its
# primary, has a full disk or refuses us is alive, and killing it would only cost its data.
. /scripts/lib.sh
itself=yes
# Shorter than the kubelet's limit: what it ends by itself leaves a client behind that a node may wait for without end.
within="timeout 4"
left=${1:-1}
while :; do
  answer=$(cli PING 2>&1)
  case $answer in
  *PONG* | *LOADING* | *BUSY* | *MASTERDOWN* | *MISCONF* | *NOAUTH* | *WRONGPASS* | *NOPERM* | *"max number of clients"*) exit 0 ;;
  esac
  left=$((left - 1))
  if [ "$left" -lt 1 ]; then break; fi
  sleep 1
done
echo "$answer"
exit 1
