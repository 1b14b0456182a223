#!/bin/bash
# stolen-token.sh: what an attacker with the token of the operator's account cannot do, on the Kubernetes that up.sh started
# and with the operator installed on it (inside.sh runs it). Every request below passes the account's permissions; the
# admission policy must deny it. For each there is one beside it that differs in the forbidden field alone and must pass:
# otherwise nothing would be proved.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
export KUBECONFIG=$kube/admin.kubeconfig
space=candor-victim
folder=$(mktemp -d)
finish() {
  local status=$?
  kubectl delete namespace "$space" --ignore-not-found --wait=false >/dev/null 2>&1 || true
  rm -rf "$folder"
  exit "$status"
}
trap finish EXIT

server=$(kubectl config view --minify --output jsonpath='{.clusters[0].cluster.server}')
token=$(kubectl --namespace candor create token candor-operator)
thief() {
  KUBECONFIG=/dev/null kubectl --server "$server" --certificate-authority "$pki/ca.crt" --token "$token" --namespace "$space" "$@"
}
kubectl create namespace "$space" >/dev/null
kubectl --namespace "$space" create serviceaccount admin >/dev/null
[ "$(thief auth whoami --output jsonpath='{.status.userInfo.username}')" = system:serviceaccount:candor:candor-operator ] ||
  die "the token is not that of the operator's account"

# A policy is in force some seconds after it was stored.
foreign='{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}}'
in_force() { ! thief create --dry-run=server --filename - <<<"$foreign" >/dev/null 2>&1; }
for _ in $(seq 100); do in_force && break; sleep 0.2; done

# may WORDS COMMAND...: passes. may_not WORDS MESSAGE COMMAND...: denied by our policy, with this in the message.
count=0
may() {
  local words=$1
  shift
  "$@" >"$folder/out" 2>&1 || die "denied, although it is the operator's work: $words: $(cat "$folder/out")"
  count=$((count + 1))
}
may_not() {
  local words=$1 message=$2
  shift 2
  ! "$@" >"$folder/out" 2>&1 || die "a stolen token may: $words"
  grep -q "ValidatingAdmissionPolicy 'candor-operator.candor'.*$message" "$folder/out" ||
    die "$words is denied by somebody else: $(cat "$folder/out")"
  count=$((count + 1))
}

# deployment [CHANGE]: a member as the operator makes it, with a change in the language of jq.
deployment() {
  python3 - "${1:-pass}" <<'PYTHON'
import json, sys
pod = {
    "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 999, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{"name": "server", "image": "valkey/valkey:9.1", "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
    "volumes": [{"name": "data", "emptyDir": {}}, {"name": "users", "secret": {"secretName": "internal-x-acl"}}],
}
labels = {"valkey.io/cluster": "x", "app.kubernetes.io/managed-by": "candor"}
meta = {
    "name": "valkey-x-0-0", "labels": labels,
    "ownerReferences": [{"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "name": "x", "uid": "u", "controller": True}],
}
container = pod["containers"][0]
# Makes a pod of it.
kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
exec(sys.argv[1])
if kind["kind"] == "Pod":
    print(json.dumps({**kind, "metadata": meta, "spec": pod}))
else:
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    if kind["kind"] == "StatefulSet":
        spec["serviceName"] = "valkey-x"
    print(json.dumps({**kind, "metadata": meta, "spec": spec}))
PYTHON
}
try() { thief create --dry-run=server --filename "$folder/object"; }
# denied WORDS MESSAGE CHANGE, for Deployments, StatefulSets and pods alike.
denied() {
  local kind
  for kind in apps/v1.Deployment apps/v1.StatefulSet v1.Pod; do
    deployment "kind = {'apiVersion': '${kind%.*}', 'kind': '${kind##*.}'}" >"$folder/object"
    may "a ${kind##*.} of a member" try
    deployment "kind = {'apiVersion': '${kind%.*}', 'kind': '${kind##*.}'}; $3" >"$folder/object"
    may_not "${kind##*.}: $1" "$2" try
  done
}
denied "a privileged container" "not privileged" 'container["securityContext"]["privileged"] = True'
denied "a privileged init container" "not privileged" \
  'pod["initContainers"] = [{"name": "i", "image": "i", "securityContext": {"privileged": True}}]'
denied "the node's network" "no namespace of the node" 'pod["hostNetwork"] = True'
denied "the node's processes" "no namespace of the node" 'pod["hostPID"] = True'
denied "the node's files" "nothing else" 'pod["volumes"].append({"name": "host", "hostPath": {"path": "/"}})'
denied "another account's token" "no service account" 'pod["serviceAccountName"] = "admin"'
denied "a token" "no service account" 'pod["automountServiceAccountToken"] = True'
denied "a projected token" "nothing else" \
  'pod["volumes"].append({"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})'
denied "a capability" "no capability" 'container["securityContext"]["capabilities"]["add"] = ["SYS_ADMIN"]'
denied "no seccomp" "seccomp" 'pod["securityContext"]["seccompProfile"]["type"] = "Unconfined"'
denied "a port of the node" "no port" 'container["ports"] = [{"containerPort": 1, "hostPort": 1}]'
denied "a node of its choice" "scheduler" 'pod["nodeName"] = "candor-node"'
denied "a pod of nobody" "" 'del meta["ownerReferences"]'
denied "another name" "begins with valkey-" 'meta["name"] = "other"'

# A RedkeyCluster: its workloads have its name, and its agent Robin alone has a service account, whose Role only reads.
redkey='
labels.clear(); labels.update({"redkey-cluster-name": "cache", "redis.redkeycluster.operator/component": "redis"})
meta["name"] = "cache"
meta["ownerReferences"][0].update({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster", "name": "cache"})
kind = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
'
robin="$redkey"'
labels["redis.redkeycluster.operator/component"] = "robin"
meta["name"] = pod["serviceAccountName"] = "cache-robin"
pod["automountServiceAccountToken"] = True
kind["kind"] = "Deployment"
'
# as_is WORDS CHANGE; as_not WORDS MESSAGE CHANGE.
as_is() { deployment "$2" >"$folder/object"; may "$1" try; }
as_not() { deployment "$3" >"$folder/object"; may_not "$1" "$2" try; }
as_is "the servers of a RedkeyCluster" "$redkey"
as_not "servers of another name" "name of their RedkeyCluster" "$redkey"'meta["name"] = "other"'
as_not "servers with an account" "no service account" "$redkey"'pod["serviceAccountName"] = "admin"'
as_not "servers with a token" "no service account" "$redkey"'pod["automountServiceAccountToken"] = True'
as_is "a Robin" "$robin"
as_not "a Robin with another account" "no service account" "$robin"'pod["serviceAccountName"] = "admin"'
as_not "a Robin of another name" "no service account" "$robin"'meta["name"] = pod["serviceAccountName"] = "cache-agent"'
as_not "a privileged Robin" "not privileged" "$robin"'container["securityContext"]["privileged"] = True'
# of_robin KIND FIELDS: an object of its account.
of_robin() {
  cat >"$folder/object" <<J
{"apiVersion": "$1", "kind": "$2", "metadata": {"name": "${4:-cache-robin}", "labels": {"redkey-cluster-name": "cache"},
  "ownerReferences": [{"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster", "name": "cache", "uid": "u", "controller": true}]}$3}
J
}
rbac=rbac.authorization.k8s.io
of_robin v1 ServiceAccount ''
may "Robin's account" try
of_robin v1 ServiceAccount '' cache-admin
may_not "another account" "of Robin" try
reads='{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}'
its_own='{"apiGroups": ["redkey.inditex.dev"], "resources": ["redkeyclusters"], "resourceNames": ["cache"], "verbs": ["get"]}'
of_robin "$rbac/v1" Role ", \"rules\": [$reads, $its_own]"
may "Robin's Role" try
for more in '{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}' '{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}' \
  '{"apiGroups": ["redkey.inditex.dev"], "resources": ["redkeyclusters"], "verbs": ["get"]}'; do
  of_robin "$rbac/v1" Role ", \"rules\": [$reads, $more]"
  may_not "a Role with $more" "nothing else" try
done
subject() { echo "\"subjects\": [{\"kind\": \"ServiceAccount\", \"name\": \"cache-robin\", \"namespace\": \"$1\"}]"; }
# The account may bind a Role that exists and allows no more than the account itself.
kubectl --namespace "$space" create role cache-robin --verb get,list,watch --resource pods >/dev/null
role() { echo ", \"roleRef\": {\"apiGroup\": \"$rbac\", \"kind\": \"$1\", \"name\": \"$2\"}, $(subject "$3")"; }
of_robin "$rbac/v1" RoleBinding "$(role Role cache-robin "$space")"
may "Robin's RoleBinding" try
of_robin "$rbac/v1" RoleBinding "$(role Role cache-robin kube-system)"
may_not "a RoleBinding for an account elsewhere" "of its namespace" try
of_robin "$rbac/v1" RoleBinding "$(role ClusterRole candor-operator "$space")"
may_not "its own permissions for Robin" "of its namespace" try

owner='"ownerReferences": [{"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "name": "x", "uid": "u", "controller": true}]'
marks='"labels": {"valkey.io/cluster": "x", "app.kubernetes.io/managed-by": "candor"}'
object() { echo "$1" >"$folder/object"; }
object '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "internal-x-acl", '"$owner, $marks"'}}'
may "its own Secret" try
object '{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "internal-x-acl",
  "annotations": {"kubernetes.io/service-account.name": "default"}, '"$owner, $marks"'}}'
may_not "a Secret that Kubernetes fills with a token" "Opaque" try
object '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", '"$owner, $marks"'}}'
may_not "a Secret of another name" "internal-" try
of_robin v1 Secret ', "type": "Opaque"'
may "Robin's Secret" try
object '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "valkey-x", '"$owner, $marks"'}, "spec": {"ports": [{"port": 1}]}}'
may "its own Service" try
object '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "valkey-x", '"$owner, $marks"'}, "spec": {"ports": [{"port": 1}], "externalIPs": ["192.0.2.1"]}}'
may_not "a Service with an address from outside" "inside the cluster" try
object '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "valkey-x", '"$owner, $marks"'}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}'
may_not "a Service with a port of every node" "inside the cluster" try

# What others own. It can be read: permissions alone decide about that, and no policy is asked.
kubectl --namespace "$space" create secret generic foreign --from-literal word=before >/dev/null
kubectl --namespace "$space" create configmap foreign --from-literal word=before >/dev/null
kubectl --namespace "$space" create deployment foreign --image localhost/pause:candor >/dev/null
kubectl --namespace "$space" create service clusterip foreign --tcp 80 >/dev/null
kubectl --namespace "$space" run foreign --image localhost/pause:candor >/dev/null
# ask METHOD PATH [BODY]: kubectl would read first, which the account may not do everywhere.
ask() {
  curl --silent --show-error --fail-with-body --cacert "$pki/ca.crt" --header "Authorization: Bearer $token" --request "$1" \
    --header 'Content-Type: application/merge-patch+json' --data "${3:-}" "$server$2"
}
change='{"metadata": {"labels": {"valkey.io/cluster": "x"}}}'
for at in /api/v1/{secrets,configmaps,services,pods} /apis/apps/v1/deployments; do
  path=${at%/*}/namespaces/$space/${at##*/}
  may "to list ${at##*/}" thief get "${at##*/}" --output name
  may_not "to label foreign ${at##*/}" "" ask PATCH "$path/foreign" "$change"
  may_not "to take over foreign ${at##*/}" "" ask PATCH "$path/foreign" "{\"metadata\": {$owner, $marks}}"
done
may_not "to change the foreign Secret" "" ask PATCH "/api/v1/namespaces/$space/secrets/foreign" '{"stringData": {"word": "after"}}'
may_not "to change the foreign Deployment" "" ask PATCH "/apis/apps/v1/namespaces/$space/deployments/foreign" \
  '{"spec": {"template": {"spec": {"containers": [{"name": "pause", "image": "evil"}]}}}}'
# With our label alone a controller of another still counts; an object without one is adopted, as after a backup.
secret=/api/v1/namespaces/$space/secrets/internal-x-acl
kubectl --namespace "$space" create secret generic internal-x-acl >/dev/null
kubectl --namespace "$space" label secret internal-x-acl valkey.io/cluster=x >/dev/null
may "to adopt an object that nobody controls" ask PATCH "$secret?dryRun=All" "{\"metadata\": {$owner, $marks}}"
uid=$(kubectl --namespace "$space" get deployment foreign --output jsonpath='{.metadata.uid}')
kubectl --namespace "$space" patch secret internal-x-acl --type merge --patch '{"metadata": {"ownerReferences": [{"apiVersion": "apps/v1",
  "kind": "Deployment", "name": "foreign", "uid": "'"$uid"'", "controller": true}]}}' >/dev/null
may_not "to take an object with our label from its controller" "another one controls" ask PATCH "$secret" "{\"metadata\": {$owner, $marks}}"
of_robin apps/v1 StatefulSet ', "spec": {"serviceName": "foreign", "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata":
  {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "localhost/pause:candor"}]}}}' foreign
sed 's/redkey-cluster-name/some-label/; s/"RedkeyCluster"/"Other"/' "$folder/object" | kubectl --namespace "$space" create --filename - >/dev/null
may_not "to take over the foreign StatefulSet" "" ask PATCH "/apis/apps/v1/namespaces/$space/statefulsets/foreign" \
  '{"metadata": {"labels": {"redkey-cluster-name": "foreign"}}}'
may_not "to delete the foreign pod" "" ask DELETE "/api/v1/namespaces/$space/pods/foreign"
# A pod that a member's workload released, because it lost its labels, and one that only has such a name.
for name in valkey-x-0-0-released valkey-x-0-0-other; do
  kubectl --namespace "$space" run "$name" --image localhost/pause:candor >/dev/null
done
released=/api/v1/namespaces/$space/pods/valkey-x-0-0-released
kubectl --namespace "$space" annotate pod valkey-x-0-0-released valkey.io/template-hash=x >/dev/null
may_not "to change a released pod" "" ask PATCH "$released" "$change"
may "to delete a released pod" ask DELETE "$released?dryRun=All"
may_not "to delete a pod that only has a member's name" "" ask DELETE "/api/v1/namespaces/$space/pods/valkey-x-0-0-other"
may_not "to delete the foreign Deployment" "" ask DELETE "/apis/apps/v1/namespaces/$space/deployments/foreign"
say "a stolen token: $count requests, each answered as it must be"
