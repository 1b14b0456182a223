#!/bin/bash
# storage.sh: gives every claim of the class `folders` a folder of this machine, and takes the folder away with its volume.
# Claims are bound when their first pod has a place, as local disks are; a claim that grows is given the room at once.
# It runs until it is ended: node.sh starts it, down.sh ends it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib.sh"
export KUBECONFIG=$kube/admin.kubeconfig
folders=$run/volumes
provisioner=candor/folders
kubectl apply --filename - <<YAML
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: folders
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: $provisioner
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
YAML

# provide NAMESPACE CLAIM UID SIZE
provide() {
  mkdir -p "$folders/pvc-$3"
  kubectl create --filename - <<YAML || true
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-$3
  annotations: {pv.kubernetes.io/provisioned-by: $provisioner}
spec:
  capacity: {storage: $4}
  accessModes: [ReadWriteOnce]
  storageClassName: folders
  persistentVolumeReclaimPolicy: Delete
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: $1, name: $2, uid: $3}
  local: {path: $folders/pvc-$3}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]}]
YAML
}

# grow NAMESPACE CLAIM UID SIZE
grow() {
  local room='{"capacity":{"storage":"'$4'"}}'
  kubectl patch persistentvolume "pvc-$3" --patch '{"spec":'"$room"'}' &&
    kubectl patch persistentvolumeclaim --namespace "$1" "$2" --subresource status --patch '{"status":'"$room"'}' || true
}

claims() {
  kubectl get persistentvolumeclaims --all-namespaces --watch --no-headers --output custom-columns="\
NS:.metadata.namespace,N:.metadata.name,U:.metadata.uid,P:.status.phase,C:.spec.storageClassName,\
AT:.metadata.annotations.volume\.kubernetes\.io/selected-node,W:.spec.resources.requests.storage,H:.status.capacity.storage" |
    while read -r namespace name uid phase class at wanted has; do
      [ "$class" = folders ] || continue
      case $phase in
        Pending) [ "$at" = "<none>" ] || provide "$namespace" "$name" "$uid" "$wanted" ;;
        Bound) [ "$wanted" = "$has" ] || grow "$namespace" "$name" "$uid" "$wanted" ;;
      esac
    done
}

volumes() {
  kubectl get persistentvolumes --watch --no-headers --output custom-columns="\
N:.metadata.name,P:.status.phase,C:.spec.storageClassName,R:.spec.persistentVolumeReclaimPolicy" |
    while read -r name phase class reclaim; do
      [ "$class/$phase/$reclaim" = folders/Released/Delete ] || continue
      rm -rf "${folders:?}/$name"
      kubectl delete persistentvolume "$name" --wait=false || true
    done
}

# An API server ends a watch after a while; the next one begins with all there is.
while :; do volumes || true; sleep 0.2; done &
while :; do claims || true; sleep 0.2; done
