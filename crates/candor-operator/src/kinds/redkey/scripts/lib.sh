# Read by the other scripts. POSIX sh, and nothing but what the images of Valkey and Redis have.

if command -v valkey-server >/dev/null 2>&1; then family=valkey; else family=redis; fi

# value KEY FILE: the value of a key. The last line counts; quotes are taken off.
value() {
  found=
  while read -r key rest; do
    if [ "$key" = "$1" ]; then found=$rest; fi
  done <"$2"
  found=${found#\"}
  printf '%s' "${found%\"}"
}

# cli ARGS...: the servers' own client. The password travels in the environment: every process on the node can read a
# command line. $within may hold a program that ends a client that takes too long.
cli() {
  REDISCLI_AUTH=$(cat "${credentials:-/credentials}/requirepass" 2>/dev/null) || REDISCLI_AUTH=
  if [ -n "$REDISCLI_AUTH" ]; then export REDISCLI_AUTH; else unset REDISCLI_AUTH; fi
  ${within:-} "$family-cli" "$@"
}
