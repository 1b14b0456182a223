# The empty restart (valkey-io/valkey#579). A primary that restarts quickly without its data is still the primary to its
# replicas: they copy its empty data set. Older servers do so even when it has a new node id, because they follow the
# address. So it keeps its port closed until another member has its slots.
#
# Read by start.sh, which sets $conf, $data, $nodes, $good and $users. Nothing here takes time when there is no old map.

# The old map: our id and slots; $followers, the hosts of our replicas; $free, those of members that could have become a
# replica of ours since the map was written; $serving, those of other primaries with slots.
read_map() {
  id= owned= followers= free= serving=
  while read -r node _ flags _ _ _ _ _ slots; do
    case $flags in
    *myself*master*) id=$node owned=$slots ;;
    *myself*) id=$node ;;
    esac
  done <"$nodes"
  while read -r _ address flags primary _ _ _ _ slots; do
    case $flags in
    *myself* | *noaddr* | *handshake*) continue ;;
    *master* | *slave*) ;;
    *) continue ;;
    esac
    host=${address%%@*}
    host=${host%:*}
    if [ "$primary" = "$id" ]; then
      followers="$followers $host"
    elif [ -n "$slots" ]; then
      serving="$serving $host"
    else
      free="$free $host"
    fi
  done <"$nodes"
}

# covers RANGES: whether they hold the first of our slots.
covers() {
  first=${owned%% *}
  first=${first%%-*}
  for range in $1; do
    case $range in \[*) continue ;; esac
    if [ "${range%-*}" -le "$first" ] && [ "$first" -le "${range#*-}" ]; then return 0; fi 2>/dev/null
  done
  return 1
}

# ask HOST: one line with what a peer reports about us: "HOST refused" when nothing listens there, "HOST silent" when it
# gives no answer that can be used, else "HOST REPLICA FOLLOWED TAKEN SLOTS...": whether this peer is a replica of ours,
# whether any member is, whether another node has our slots, and the slots that we own.
ask() {
  map=$(cli -h "$1" CLUSTER NODES 2>&1) || true
  replica=no followed=no taken=no had= answered=
  while read -r node _ flags primary _ _ _ _ slots; do
    if [ "$node" = "$id" ]; then
      had=$slots
    elif covers "$slots"; then
      taken=yes
    fi
    if [ "$primary" = "$id" ]; then followed=yes; fi
    case $flags in
    *myself*)
      answered=yes
      if [ "$primary" = "$id" ]; then replica=yes; fi
      ;;
    esac
  done <<MAP
$map
MAP
  case $answered$map in
  yes*) echo "$1 $replica $followed $taken $had" ;;
  *"onnection refused"*) echo "$1 refused" ;;
  *) echo "$1 silent" ;;
  esac
}

# survey HOSTS...: asks all of them at once. $copied: a member that answers is still a replica of ours. $followed: a peer
# knows a replica of ours. $replaced: a peer knows another node with our slots. $unsure: hosts that could be a replica of
# ours and do not say. $had: the slots that a peer says we own.
survey() {
  copied= any= replaced= unsure= has=
  answers=$(
    for host; do ask "$host" & done
    wait
  )
  while read -r host replica followed taken had; do
    case $replica in
    refused) case " $followers " in *" $host "*) unsure="$unsure $host" ;; esac ;;
    silent) case " $serving " in *" $host "*) ;; *) unsure="$unsure $host" ;; esac ;;
    esac
    if [ "$replica" = yes ]; then copied="$copied $host"; fi
    if [ "$followed" = yes ]; then any=yes; fi
    if [ "$taken" = yes ]; then replaced=yes; fi
    if [ -n "$had" ]; then has=$had; fi
  done <<ANSWERS
$answers
ANSWERS
  followed=$any had=$has
}

# Whether the port may be opened, as far as the last survey tells. A replica that answers and is still ours has what we
# lost: as long as there is one, its copy is worth more than our port.
may_open() {
  if [ -n "$copied" ]; then return 1; fi
  if [ -n "$replaced" ]; then return 0; fi
  [ -z "$followed$unsure" ]
}

# few HOSTS...: the first five.
few() {
  left=5
  for host; do
    if [ "$left" -gt 0 ]; then printf ' %s' "$host"; fi
    left=$((left - 1))
  done
}

# Keeps the port closed while a replica could copy the empty data set, but for no longer than two node timeouts and two
# seconds when no replica answers.
hold() {
  within="timeout 1"
  survey $followers $free $serving
  if [ -z "$owned" ]; then
    # Our map says that we are a replica. A peer may know better: we were promoted, and the map is older than that.
    if [ -z "$had$followed" ]; then
      echo "start.sh: $id was a replica and restarts without its data"
      return 0
    fi
    owned=$had
  fi
  if may_open; then
    echo "start.sh: $id restarts without its data: no replica can copy it (peers:$followers$free$serving)"
    return 0
  fi
  timeout=$(value cluster-node-timeout "$conf")
  end=$(($(date +%s) + (2 * timeout + 999) / 1000 + 2))
  echo "start.sh: the data of $id is gone: the port stays closed until another member has slots $owned"
  while :; do
    sleep 0.1
    survey $followers $copied $unsure $(few $serving $free)
    if may_open; then
      echo "start.sh: another member has the slots of $id, or none is its replica"
      return
    fi
    if [ "$(date +%s)" -ge "$end" ] && [ -z "$copied" ]; then
      echo "start.sh: no replica answered for two node timeouts"
      return
    fi
  done
}

# The data that a server would load: "log" (up to the last write), "file" (up to the last save) or "none".
dataset() {
  log=$data/$(value appenddirname "$conf")
  if [ "$log" = "$data/" ]; then log=$data/appendonlydir; fi
  name=$(value appendfilename "$conf")
  file=$(value dbfilename "$conf")
  if [ -s "$log/${name:-appendonly.aof}.manifest" ]; then
    echo log
  elif [ -s "$data/${file:-dump.rdb}" ]; then
    echo file
  else
    echo none
  fi
}

guard() {
  if [ "$VALKEY_DATA" = lost ]; then
    # What an earlier process left is a copy of some moment, never the data.
    for old in "${data:?}"/* "$data"/.[!.]*; do
      case $old in "$nodes" | "$good") ;; *) rm -rf "$old" ;; esac
    done
  fi
  if [ ! -s "$nodes" ]; then return 0; fi
  kind=$(dataset)
  if [ "$kind" = log ]; then return 0; fi
  read_map
  hold
  # A save may be hours old: the member that has the slots now announces it, and this one joins under its old id. Without
  # any data it joins as a new node.
  if [ "$kind" = none ]; then rm -f "$nodes"; fi
}
