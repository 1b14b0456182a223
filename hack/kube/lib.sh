# Shared by the scripts of this folder. Source it after ../lib.sh.
KUBE_VERSION=${KUBE_VERSION:-1.34.4}
ETCD_VERSION=${ETCD_VERSION:-3.6.6}
kube=${CANDOR_KUBE:-$cache/kube}
pki=$kube/pki
run=$kube/run
port=${CANDOR_KUBE_PORT:-16443}
etcd_port=${CANDOR_ETCD_PORT:-12379}

# The node, when there is one. All addresses are of the range that is kept for benchmarks: nothing real is shadowed.
node=candor-node
node_address=198.18.255.1
pods=198.18.0.0/24
services=198.19.0.0/22
first_service=198.19.0.1
bridge=candor0
# Debian's packages for the node, unpacked; nothing is installed in the system.
node_root=$kube/node
socket=$run/containerd.sock
PATH=$PATH:$cache/bin:$node_root/usr/sbin:$node_root/usr/bin

# A node needs namespaces, mounts and control groups.
with_node() { [ "$(id -u)" = 0 ]; }

# launch NAME COMMAND...: a process in the background, in a group of its own, with its log and its pid in $run.
launch() {
  local name=$1
  shift
  setsid "$@" >"$run/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$run/$name.pid"
  began $! >"$run/$name.began"
}

# began PID: when the kernel started it; empty when there is none. Only with it is a pid the name of one process.
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# runs NAME: its pid, when what was launched under this name still runs. A pid file may outlive a reboot.
runs() {
  local pid
  pid=$(cat "$run/$1.pid" 2>/dev/null) || return 1
  [ -n "$(began "$pid")" ] && [ "$(began "$pid")" = "$(cat "$run/$1.began" 2>/dev/null)" ] && echo "$pid"
}

# expect NAME WORDS COMMAND...: waits up to a minute until the command succeeds while NAME runs.
expect() {
  local name=$1 words=$2
  shift 2
  for _ in $(seq 300); do
    "$@" >/dev/null 2>&1 && return
    runs "$name" >/dev/null || { tail -n 5 "$run/$name.log" >&2; die "$name ended; $run/$name.log says why"; }
    sleep 0.2
  done
  die "$words was not so within 60 s; see $run/$name.log"
}

# end NAME: asks it to end, with everything it started, and waits; an API server may take a while to say goodbye.
end() {
  local pid
  if pid=$(runs "$1"); then
    kill -- "-$pid" 2>/dev/null
    for _ in $(seq 50); do runs "$1" >/dev/null || break; sleep 0.2; done
    runs "$1" >/dev/null && kill -9 -- "-$pid" 2>/dev/null
  fi
  rm -f "$run/$1.pid" "$run/$1.began"
}

# ctr_here ARGUMENTS...: containerd's own client, in the namespace of Kubernetes.
ctr_here() { ctr --address "$socket" --namespace k8s.io "$@"; }
