# Shared by the scripts of this folder. Source it after ../lib.sh.
KUBE_VERSION=${KUBE_VERSION:-1.34.4}
ETCD_VERSION=${ETCD_VERSION:-3.6.6}
kube=${CANDOR_KUBE:-$cache/kube}
pki=$kube/pki
run=$kube/run
port=${CANDOR_KUBE_PORT:-16443}
etcd_port=${CANDOR_ETCD_PORT:-12379}

# launch NAME COMMAND...: a process in the background with its log and its pid in $run.
launch() {
  local name=$1
  shift
  setsid "$@" >"$run/$name.log" 2>&1 </dev/null &
  echo $! >"$run/$name.pid"
}
