# The empty restart. A primary that comes back quickly without the data it had is still the primary to everyone: its
# replicas copy the emptiness, and older servers do so even when it has a new id, because they follow the address.
# So it stays silent until somebody else has its slots.
#
# Read by start.sh, which sets $conf, $data, $nodes, $good and $users. Nothing here takes time when there is no old map.

# The old map: who we were, what we owned, who followed us, who else was there.
read_map() {
  id= owned= followers= others=
  while read -r node _ flags _ _ _ _ _ slots; do
    case $flags in
    *myself*master*) id=$node owned=$slots ;;
    *myself*) id=$node ;;
    esac
  done <"$nodes"
  while read -r node address flags primary _; do
    case $flags in
    *myself* | *noaddr* | *handshake*) continue ;;
    *master* | *slave*) ;;
    *) continue ;;
    esac
    host=${address%%@*}
    if [ "$primary" = "$id" ]; then
      followers="$followers ${host%:*}"
    else
      others="$others ${host%:*}"
    fi
  done <"$nodes"
}

# covers RANGES: whether they hold the first of our slots.
covers() {
  for range in $1; do
    case $range in \[*) continue ;; esac
    if [ "${range%-*}" -le "$first" ] && [ "$first" -le "${range#*-}" ]; then return 0; fi 2>/dev/null
  done
  return 1
}

# view HOST: what a peer says of us: $had is what we own, $taken whether another one has our slots, $known whether it knows
# us, $follows whether anybody follows us. Fails when the peer says nothing.
view() {
  had= taken= known= follows= spoke=
  first=${owned%% *}
  first=${first%%-*}
  map=$(cli -h "$1" CLUSTER NODES 2>/dev/null) || return 1
  while read -r node _ flags primary _ _ _ _ slots; do
    if [ "$node" = "$id" ]; then
      known=yes had=$slots
    elif covers "$slots"; then
      taken=yes
    fi
    if [ "$primary" = "$id" ]; then follows=yes; fi
    case $flags in *myself*) spoke=yes ;; esac
  done <<MAP
$map
MAP
  [ -n "$spoke" ]
}

# Whether somebody else has our slots. Followers are believed first: they are those who would copy us. One that has just
# come follows us before it has heard what we own, so that we own nothing is not enough while it follows.
replaced() {
  spoke_once=
  for host in $followers; do
    view "$host" || continue
    if [ -n "$had" ] || { [ -z "$taken" ] && [ -n "$follows" ]; }; then
      still_followed=yes
      return 1
    fi
    spoke_once=yes
  done
  if [ -n "$spoke_once" ]; then return 0; fi
  for host in $others; do
    view "$host" || continue
    [ -z "$had" ] && { [ -n "$taken" ] || [ -z "$known" ]; }
    return
  done
  return 1
}

# Whether anybody is known to follow us: our own map may be older than a new replica.
followed() {
  if [ -n "$followers" ]; then return 0; fi
  for host in $others; do
    view "$host" || continue
    [ -n "$follows" ]
    return
  done
  return 1
}

# Stays silent until somebody else has our slots, or for two node timeouts and a second when nobody says. A follower
# that answers and still follows us has what we lost: as long as there is one, its copy is worth more than our port.
hold() {
  within="timeout 1"
  followed || return 0
  timeout=$(value cluster-node-timeout "$conf")
  end=$(($(date +%s) + (2 * timeout + 999) / 1000 + 2))
  echo "start.sh: the data of $id is gone: silent until another member has slots $owned"
  while :; do
    still_followed=
    if replaced; then
      echo "start.sh: somebody else has the slots of $id"
      return
    fi
    if [ "$(date +%s)" -ge "$end" ] && [ -z "$still_followed" ]; then
      echo "start.sh: nobody answered for two node timeouts"
      return
    fi
    sleep 0.1
  done
}

# Which data a server would find: "log" and "file" are those of the last write and of the last save, "none" is none.
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
  if [ -n "$owned" ]; then hold; fi
  # A save may be hours old: whoever took over told the rest, and this one joins them under its old id. With no data at
  # all it is nobody.
  if [ "$kind" = none ]; then rm -f "$nodes"; fi
}
