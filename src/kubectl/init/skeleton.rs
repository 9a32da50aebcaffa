//! A first SearchCluster, from facts about a pod. Pure.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use stayput_certificates::names::SecretNames;
use stayput_inject::Reachability;

/// The selector of the pods, and how to reach their engine.
#[derive(Debug)]
pub(crate) struct Pods {
    pub(crate) selector: LabelSelector,
    pub(crate) reached: Reachability,
}

/// Settings of the engine in the SearchCluster, and the issuer of the managers' certificate: from the
/// command line, or found.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) engine_http: bool,
    pub(crate) engine_ca: Option<String>,
    pub(crate) server_name: Option<String>,
    pub(crate) credentials: Option<String>,
    pub(crate) is_cert_managers: bool,
}

/// The SearchCluster, or the setting that is missing and how to give it. The reconciler itself finds the
/// config's sources in the pods.
pub(crate) fn search_cluster(
    names: &SecretNames,
    pods: &Pods,
    wanted: &Wanted,
) -> Result<Value, &'static str> {
    let mut engine = match (&wanted.engine_ca, wanted.engine_http, pods.reached.has_tls) {
        (Some(ca), _, _) => json!({ "scheme": "https", "caSecret": ca }),
        (None, true, _) | (None, false, Some(false)) => json!({ "scheme": "http" }),
        (None, false, Some(true)) => {
            return Err(
                "the engine has TLS: run it again with --engine-ca SECRET, the Secret with the \
                        CA of its certificates as ca.crt",
            );
        }
        (None, false, None) => {
            return Err(
                "it is unknown whether the engine has TLS: run it again with --engine-http, or \
                        with --engine-ca SECRET, the Secret with the CA of its certificates as ca.crt",
            );
        }
    };
    if pods.reached.port != 9200 {
        engine["port"] = json!(pods.reached.port);
    }
    if let Some(name) = &wanted.server_name {
        engine["serverName"] = json!(name);
    }
    if let Some(credentials) = &wanted.credentials {
        engine["credentialsSecret"] = json!(credentials);
        // Over http they were named: those of an operator are left out.
        if engine["scheme"] == "http" {
            engine["allowPlainCredentials"] = json!(true);
        }
    }
    // cert-manager writes the CA beside the certificate.
    let ca = if wanted.is_cert_managers { &names.serving } else { &names.trusted };
    Ok(json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": { "name": names.cluster },
        "spec": {
            "pods": { "selector": pods.selector },
            "engine": engine,
            "manager": { "caSecret": ca, "auth": { "serviceAccountToken": {} } },
        },
    }))
}

/// Parses labels such as `app=logs,role=data`.
pub(crate) fn labels(text: &str) -> Option<BTreeMap<String, String>> {
    let label = |label: &str| {
        let (key, value) = label.split_once('=')?;
        let (key, value) = (key.trim(), value.trim_start_matches('=').trim());
        (!key.is_empty() && !key.ends_with('!')).then(|| (key.to_owned(), value.to_owned()))
    };
    text.split(',').map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_kubectl_reads_them() {
        let read = |text: &str| labels(text).map(|labels| json!(labels));
        assert_eq!(read("app=logs, role==data"), Some(json!({"app": "logs", "role": "data"})));
        for wrong in ["app", "app!=logs", "=logs", "", "app=logs,"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
