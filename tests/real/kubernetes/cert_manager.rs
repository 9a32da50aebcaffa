//! `kubectl stayput init --cert-manager`. cert-manager itself does not run: its part is played. Its
//! definition has the fields of cert-manager's own that are used here; the apiserver drops others.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stayput_certificates::issue::{authority, serving};

use super::plain_set::plain_set;
use crate::support::kubernetes::kubectl::Kubectl;

pub(super) const NAMESPACE: &str = "ordered";

fn definition() -> Value {
    let text = json!({"type": "string"});
    let one_of = |words: &[&str]| json!({"type": "string", "enum": words});
    let usages = ["signing", "digital signature", "key encipherment", "server auth", "client auth"];
    let spec = json!({
        "type": "object", "required": ["issuerRef", "secretName"],
        "properties": {
            "secretName": text,
            "dnsNames": {"type": "array", "items": text},
            "issuerRef": {
                "type": "object", "required": ["name"],
                "properties": {"group": text, "kind": text, "name": text},
            },
            "privateKey": {"type": "object", "properties": {
                "algorithm": one_of(&["RSA", "ECDSA", "Ed25519"]),
                "rotationPolicy": one_of(&["Never", "Always"]),
                "size": {"type": "integer"},
            }},
            "usages": {"type": "array", "items": one_of(&usages)},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "certificates.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"kind": "Certificate", "plural": "certificates", "singular": "certificate"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// The certificate is ordered once, and no CA of ours is made; `init` runs `kubectl stayput init`.
pub(super) fn ordered(admin: &Kubectl, init: impl Fn(&[&str]) -> Value) {
    admin.apply(&definition());
    let name = "customresourcedefinition/certificates.cert-manager.io";
    admin.run(&["wait", "--for=condition=Established", "--timeout=60s", name]);
    admin.run(&["create", "namespace", NAMESPACE]);
    admin.apply(&plain_set(NAMESPACE));
    let options = ["--namespace", NAMESPACE, "--cert-manager", "ClusterIssuer/people"];
    let results = |output: Value| {
        let objects = output["objects"].as_array().expect("a list").clone();
        objects.into_iter().map(|one| [one["kind"].clone(), one["result"].clone()]).collect()
    };
    let wanted = |result: &str| {
        let bindings = ["Role", "RoleBinding", "RoleBinding"];
        let kinds = [&["Certificate", "ConfigMap"][..], &bindings, &["SearchCluster"]].concat();
        let kinds = kinds.into_iter();
        kinds.map(|kind| [json!(kind), json!(result)]).collect::<Vec<_>>()
    };
    let made: Vec<[Value; 2]> = results(init(&options));
    assert_eq!(made, wanted("made"));
    let get = ["get", "certificate", "logs-manager-tls", "--namespace", NAMESPACE];
    let spec = admin.json(&get)["spec"].take();
    assert_eq!(spec["issuerRef"], json!({"kind": "ClusterIssuer", "name": "people"}));
    assert_eq!(spec["secretName"], "logs-manager-tls");
    assert_eq!(spec["dnsNames"], json!(["stayput"]));
    // Fields that the definition does not have would be gone, and be written again.
    let again: Vec<[Value; 2]> = results(init(&options));
    assert_eq!(again, wanted("unchanged"));
    let cluster = admin.json(&["get", "searchcluster", "logs", "--namespace", NAMESPACE]);
    assert_eq!(cluster["spec"]["manager"]["caSecret"], "logs-manager-tls");
    issued(admin);
}

/// As cert-manager writes it: the CA is beside the certificate.
fn issued(admin: &Kubectl) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let ca = authority("logs", now).expect("a CA");
    let made = serving(&ca, "logs", "stayput", now).expect("a certificate");
    admin.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "logs-manager-tls", "namespace": NAMESPACE},
        "stringData": {
            "tls.crt": made.certificate, "tls.key": made.key, "ca.crt": ca.certificate,
        },
    }));
}
