#!/bin/bash
# clients.sh [CANDOR]: runs the programs of examples/clients, with TLS and a user, against a cluster of 3 shards with a
# replica each on a sandbox, while it rolls, grows to 4 shards and loses a primary; prints errors and the slowest call of
# each. The client libraries are fetched into a temporary folder; a library that cannot be fetched is named and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/stage.sh
hack/setup.sh servers kubectl
PATH=$PATH:$cache/bin
program=${1:-}
[ -n "$program" ] || build_candor
seconds=${CANDOR_CLIENT_SECONDS:-60}
set_stage
source=$PWD/examples/clients
python3 - <<'P' || die "docs/connecting.md shows code that is not in examples/clients"
import pathlib, re, sys
code = [file.read_text() for file in pathlib.Path("examples/clients").iterdir()]
blocks = re.findall(r"```(?:python|js|go|java)\n(.*?)\n```", pathlib.Path("docs/connecting.md").read_text(), re.S)
sys.exit(not blocks or any(not any(block in text for text in code) for block in blocks))
P
mkdir "$folder/clients"
cp "$source"/* "$folder/clients"

# fetch NAME COMMAND...: a client that can be run afterwards, or a line that says that it cannot.
clients=()
fetch() {
  local name=$1
  shift
  if (cd "$folder/clients" && "$@") >"$folder/$name.fetch" 2>&1; then clients+=("$name"); else say "$name: cannot be fetched here"; fi
}
python() { [ -d python ] || python3 -m venv python; python/bin/pip install --quiet "$1"; }
java_client() {
  mvn --quiet --batch-mode compile dependency:build-classpath -Dmdep.outputFile=classpath
}
go_client() {
  mkdir -p go && cp go_redis.go go/main.go && cd go && go mod init clients && go get github.com/redis/go-redis/v9 &&
    go build -o ../go_redis .
}
fetch redis-py python redis
fetch valkey-glide python valkey-glide
fetch ioredis npm install --silent --no-save ioredis
fetch node-redis npm install --silent --no-save ioredis redis
fetch go-redis go_client
fetch Jedis java_client
run() {
  cd "$folder/clients"
  case $1 in
    redis-py) python/bin/python redis_py.py "$seconds" ;;
    valkey-glide) python/bin/python valkey_glide.py "$seconds" ;;
    ioredis) node ioredis.mjs "$seconds" ;;
    node-redis) node node-redis.mjs "$seconds" ;;
    go-redis) ./go_redis "$seconds" ;;
    Jedis) java -cp "target/classes:$(cat classpath)" JedisClient "$seconds" ;;
  esac
}

start_sandbox --nodes 3 --zones a,b,c
start_operator --lease-namespace default
cd "$folder"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=my-ca -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=secure -keyout tls.key -out tls.csr 2>/dev/null
printf 'subjectAltName=DNS:valkey-secure-client\nextendedKeyUsage=serverAuth,clientAuth\n' >ext
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out tls.crt 2>/dev/null
cd - >/dev/null
kubectl create secret generic secure-tls --from-file="$folder/ca.crt" --from-file="$folder/tls.crt" --from-file="$folder/tls.key" >/dev/null
kubectl create secret generic secure-users --from-literal=app=change-me >/dev/null
kubectl apply --filename - >/dev/null <<'Y'
apiVersion: valkey.io/v1alpha1
kind: ValkeyCluster
metadata: {name: secure}
spec:
  shards: 3
  replicas: 1
  exporter: {enabled: false}
  users: [{name: app, commands: {allow: ["@all"]}, keys: {readWrite: ["app:*"]}}]
  networking: {tls: {certificates: {server: {secretName: secure-tls}}}}
Y
ready() { kubectl wait --for=condition=Ready --timeout=120s vkc/secure >/dev/null; }
ready
HOST=$(kubectl get pods --selector valkey.io/cluster=secure --output jsonpath='{.items[0].status.podIP}')
export HOST PASSWORD=change-me CA=$folder/ca.crt

declare -A running
for client in "${clients[@]}"; do
  (run "$client") >"$folder/$client.out" 2>&1 &
  running[$client]=$!
  started+=("$!")
done
sleep 5
say "rolling update"
kubectl patch vkc secure --type merge --patch '{"spec":{"terminationGracePeriodSeconds":31}}' >/dev/null
sleep 2
ready
say "3 to 4 shards"
kubectl scale vkc secure --replicas 4 >/dev/null
kubectl wait --for=jsonpath='{.status.readyShards}'=4 --timeout=120s vkc/secure >/dev/null
ready
say "a primary is killed"
kubectl delete pod --grace-period=0 --force --selector valkey.io/cluster=secure,valkey.io/shard-index=1,valkey.io/node-index=0 >/dev/null 2>&1
sleep 2
ready
for client in "${clients[@]}"; do
  wait "${running[$client]}" || true
  say "$client: $(tail -n 1 "$folder/$client.out")"
done
