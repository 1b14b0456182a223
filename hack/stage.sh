# Shared by the scripts that show the program at work: a sandbox, the operator beside it, and their end with the script.
# Source it after lib.sh; it starts nothing. `$program` is the program, `$folder` holds all that is written.

# build_candor: the profile that `make test` builds too; the first start comes minutes earlier than with an optimised one.
build_candor() {
  say "building candor ..."
  cargo build --locked -p candor
  program=$(realpath "${CARGO_TARGET_DIR:-target}/debug/candor")
}

# set_stage: makes the folder. A script that traps EXIT for itself ends the stage there.
set_stage() {
  folder=$(mktemp -d)
  export KUBECONFIG=$folder/kubeconfig
  started=()
  trap end_stage EXIT
}

# end_stage: the newest first, so that nobody loses the sandbox it talks to.
end_stage() {
  trap - EXIT INT TERM HUP
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  rm -rf "$folder"
}

# start_sandbox OPTION...: until it answers.
start_sandbox() {
  "$program" sandbox --kubeconfig "$KUBECONFIG" "$@" >"$folder/out" 2>"$folder/sandbox.log" &
  sandbox=$!
  started+=("$sandbox")
  until grep -qs KUBECONFIG "$folder/out"; do
    kill -0 "$sandbox" 2>/dev/null || { cat "$folder/sandbox.log" >&2; die "the sandbox did not start"; }
    sleep 0.05
  done
}

# start_operator OPTION...: with the definitions it needs.
start_operator() {
  kubectl apply --filename deploy/crds >/dev/null
  kubectl wait --for=condition=Established --timeout=30s --filename deploy/crds >/dev/null
  "$program" operator "$@" >"$folder/operator.log" 2>&1 &
  operator=$!
  started+=("$operator")
}

# within SECONDS WORDS COMMAND...: waits until the command succeeds.
within() {
  local until=$((SECONDS + $1)) words=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || die "not as promised: $words"
    sleep 0.1
  done
}
