# Read by the other scripts. POSIX sh, and nothing but what the images of Valkey and Redis have.

if command -v valkey-server >/dev/null 2>&1; then family=valkey; else family=redis; fi

# value KEY FILE: what a key is set to; the last line counts, quotes are taken off.
value() {
  found=
  while read -r key rest; do
    if [ "$key" = "$1" ]; then found=$rest; fi
  done <"$2"
  found=${found#\"}
  printf '%s' "${found%\"}"
}

# cli ARGS...: the servers' own client, as the user that reads figures. The password travels in the environment:
# a command line can be read by everyone on the node. $within may hold a program that ends what takes too long.
# With $itself the server of this pod is asked, and it need not prove who it is: the files are those of the Secret as it is
# now, the server may serve another certificate or none of them may be usable, and that must not look like death.
cli() {
  read -r REDISCLI_AUTH <"${users:-/config/users}/exporter-password" || true
  export REDISCLI_AUTH
  if [ -d /tls ] && [ -n "${itself:-}" ]; then
    set -- --tls --insecure "$@"
  elif [ -d /tls ]; then
    set -- --tls --cacert /tls/ca.crt --cert /tls/tls.crt --key /tls/tls.key "$@"
  fi
  ${within:-} "$family-cli" --user _exporter "$@"
}
