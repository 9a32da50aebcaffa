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
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT

secrets() { kubectl --namespace "$namespace" "$@"; }
# Without the copy of the keys that a plain `kubectl apply` leaves in an annotation.
apply() {
  secrets create secret "$@" --dry-run=client --output yaml > "$at/secret.yaml"
  secrets apply --server-side --force-conflicts --filename "$at/secret.yaml"
}
new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

found=$(secrets get secret "$cluster-manager-ca-key" --ignore-not-found --output name)
if [ -z "$found" ]; then
  new_key "$at/ca.key"
  openssl req -x509 -new -key "$at/ca.key" -days 3650 -out "$at/ca.crt" -subj "/CN=stayput of $cluster" \
    -addext 'keyUsage=critical,keyCertSign'
  secrets create secret tls "$cluster-manager-ca-key" --cert="$at/ca.crt" --key="$at/ca.key"
else
  for part in crt key; do
    secrets get secret "$cluster-manager-ca-key" \
      --output "go-template={{index .data \"tls.$part\" | base64decode}}" > "$at/ca.$part"
  done
fi

new_key "$at/tls.key"
openssl req -new -key "$at/tls.key" -out "$at/tls.csr" -subj '/CN=stayput'
printf 'subjectAltName=DNS:stayput\n' > "$at/tls.ext"
openssl x509 -req -in "$at/tls.csr" -CA "$at/ca.crt" -CAkey "$at/ca.key" -CAcreateserial -days 365 \
  -extfile "$at/tls.ext" -out "$at/tls.crt" 2> "$at/signed" || { cat "$at/signed" >&2; exit 1; }
apply generic "$cluster-manager-ca" --from-file="$at/ca.crt"
apply tls "$cluster-manager-tls" --cert="$at/tls.crt" --key="$at/tls.key"
