#!/bin/sh
# Makes the certificate of the managers of a cluster. Run it again to renew the certificate.
#
#   sh examples/kubernetes/certificate.sh NAMESPACE CLUSTER
#
# It writes three Secrets: CLUSTER-manager-tls with certificate and key of the managers, for a year;
# CLUSTER-manager-ca with the CA's certificate, for the reconciler; and CLUSTER-manager-ca-key with
# the CA's key, for this script alone.
set -eu
umask 077
namespace=$1
cluster=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

# Without the copy of the keys that `kubectl apply` leaves in an annotation.
apply() {
  kubectl --namespace "$namespace" create secret "$@" --dry-run=client --output yaml > secret.yaml
  kubectl --namespace "$namespace" apply --server-side --force-conflicts --filename secret.yaml
}
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

found=$(kubectl --namespace "$namespace" get secret "$cluster-manager-ca-key" --ignore-not-found --output name)
if [ -z "$found" ]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -days 3650 -out ca.crt -subj "/CN=stayput of $cluster" \
    -addext 'keyUsage=critical,keyCertSign'
  kubectl --namespace "$namespace" create secret tls "$cluster-manager-ca-key" --cert=ca.crt --key=ca.key
else
  for part in crt key; do
    kubectl --namespace "$namespace" get secret "$cluster-manager-ca-key" \
      --output "go-template={{index .data \"tls.$part\" | base64decode}}" > "ca.$part"
  done
fi

new_key tls.key
openssl req -new -key tls.key -out tls.csr -subj '/CN=stayput'
printf 'subjectAltName=DNS:stayput\n' > tls.ext
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile tls.ext \
  -out tls.crt 2> signed || { cat signed >&2; exit 1; }
apply generic "$cluster-manager-ca" --from-file=ca.crt
apply tls "$cluster-manager-tls" --cert=tls.crt --key=tls.key
