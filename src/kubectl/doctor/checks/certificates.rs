//! When the certificates in Secrets end: the CAs that the spec names, our own client certificate, and
//! those that the managers serve.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use stayput_http::pem::Validity;
use stayput_http::pem::certificates;
use stayput_kube_access::cluster::key;
use stayput_kube_access::workload::serving_secret;
use stayput_restart::Time;

use crate::doctor::facts::Facts;
use crate::doctor::finding::Finding;
use crate::format::time_to_second;

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let serving = facts
        .known_pods()
        .iter()
        .filter_map(|pod| serving_secret(pod, facts.cluster.completed_spec().manager.port));
    let serving: BTreeMap<String, ()> = serving.map(|name| (name, ())).collect();
    let mut found = Vec::new();
    for (name, secret) in &facts.secrets {
        match secret {
            Ok(Some(secret)) => found.extend(of_secret(facts, name, secret)),
            // Those that the spec names are told by the group of the credentials.
            Err(unknown) if serving.contains_key(name) => {
                let remedy =
                    format!("kubectl -n {} auth can-i get secret/{name}", facts.namespace());
                let object = format!("Secret/{name}");
                let finding = Finding::error("certificate", object, &unknown.message, remedy);
                found.push(finding.into_unknown());
            }
            Ok(None) | Err(_) => {}
        }
    }
    found
}

fn of_secret(facts: &Facts, name: &str, secret: &Secret) -> Option<Finding> {
    let namespace = facts.namespace();
    let value = |key: &str| secret.data.as_ref()?.get(key).map(|value| value.0.as_slice());
    let (at, pem, is_bundle) = match (value(key::TLS_CERT), value(key::CA)) {
        // As ECK has both in one: the CA is what is trusted.
        (_, Some(ca)) if is_ca(facts, name) => (key::CA, ca, true),
        (Some(certificate), _) => (key::TLS_CERT, certificate, false),
        _ => return None,
    };
    let object = format!("Secret/{name}");
    let look = format!(
        "kubectl -n {namespace} get secret {name} -o jsonpath='{{.data.{}}}' | base64 -d | openssl x509 \
         -noout -enddate",
        at.replace('.', "\\.")
    );
    let chain = certificates(at, pem).ok();
    let validity = chain.as_ref().and_then(|chain| {
        if is_bundle {
            // Of several CAs one that is valid is enough.
            chain
                .iter()
                .filter_map(|one| Validity::of(std::slice::from_ref(one)))
                .max_by_key(|one| one.not_after)
        } else {
            Validity::of(chain)
        }
    });
    let Some(validity) = validity else {
        let message = format!("{at} in it is no certificate in PEM that can be read");
        return Some(Finding::error("certificate", object, message, look));
    };
    let now = facts.now.0 / 1000;
    let end = time_to_second(Time(validity.not_after * 1000));
    let ends = |how: &str| {
        Finding::error("certificate", &object, format!("{at} in it {how} at {end}"), &look)
    };
    if now > validity.not_after {
        return Some(ends("has expired"));
    }
    (now >= validity.notice()).then(|| ends("expires").into_warning())
}

/// True if the spec names the Secret as that of a CA.
fn is_ca(facts: &Facts, name: &str) -> bool {
    let spec = facts.cluster.completed_spec();
    spec.engine.ca_secret.as_deref() == Some(name) || spec.manager.ca_secret == name
}
