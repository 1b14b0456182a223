#!/bin/sh
# Whether clients should be sent here: it has joined a cluster that has slots, has its data, and as a replica follows
# its primary. Nobody waits for this to form the cluster.
. /scripts/lib.sh
itself=yes
within="timeout 4"
answer=$(printf 'INFO replication persistence\nCLUSTER INFO\n' | cli 2>&1)
no() {
  echo "$1"
  exit 1
}
case $answer in
*cluster_slots_assigned:0*) no "has not joined a cluster yet" ;;
*cluster_slots_assigned:*) ;;
*LOADING*) no "is loading its data" ;;
*) no "$answer" ;;
esac
case $answer in
*async_loading:1* | *[!_]loading:1*) no "is loading its data" ;;
esac
case $answer in
*role:slave*)
  case $answer in
  *master_sync_in_progress:1*) no "is copying its primary's data" ;;
  *master_link_status:up*) ;;
  *) no "has lost the link to its primary" ;;
  esac
  ;;
esac
exit 0
