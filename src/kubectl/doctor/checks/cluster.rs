//! Checks the SearchCluster: spec, status and conditions, the Secrets that it names with their certificates, and
//! who else may take its nodes down.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt;
use stayput_http::pem::{Expiry, Validity, certificates, date};
use stayput_kube_access::cluster::{Scheme, SearchClusterSpec, allows, engine_keys, key};
use stayput_kube_access::pod::serving_secret;
use stayput_restart::{Condition, shell_word};

use crate::doctor::network::selects;
use crate::doctor::{Facts, Finding, Severity};
use crate::format::{NOT_PROCESSED, rounded_duration};
use crate::runbook;

pub(crate) fn check_spec(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let edit = || format!("kubectl -n {namespace} edit searchcluster {name}");
    let faults = facts.cluster.check().err().unwrap_or_default();
    let mut found: Vec<Finding> = faults
        .iter()
        .map(|fault| Finding::error("invalid_spec", facts.object(), fault.to_string(), edit()))
        .collect();
    if facts.cluster.metadata.deletion_timestamp.is_some() {
        found.push(Finding::error(
            "deleting",
            facts.object(),
            "it is being deleted: the reconciler undoes its changes and begins no restart",
            format!("kubectl stayput -n {namespace} status {name}"),
        ));
    }
    if facts.cluster.spec.paused {
        found.push(Finding::warning(
            "paused",
            facts.object(),
            "spec.paused is true: no node is stopped",
            format!("kubectl stayput -n {namespace} resume {name}"),
        ));
    }
    let engine = &facts.cluster.spec.engine;
    let sends_plain = engine.scheme == Scheme::Http && engine.credentials_secret.is_some();
    if sends_plain && engine.allow_plain_credentials {
        found.push(Finding::warning(
            "plain_credentials",
            facts.object(),
            "the engine's credentials are sent over plain http, where they can be read on the \
                 network",
            edit(),
        ));
    }
    found.extend(pods(facts));
    found
}

fn pods(facts: &Facts) -> Option<Finding> {
    let namespace = facts.namespace();
    let remedy = format!("kubectl -n {namespace} get pods --show-labels");
    match &facts.pods {
        Err(unknown) => Some(Finding::unknown("no_pods", facts.object(), &unknown.message, remedy)),
        Ok(pods) if pods.is_empty() => {
            let message = "its selector finds no pod in its namespace";
            Some(Finding::error("no_pods", facts.object(), message, remedy))
        }
        Ok(_) => None,
    }
}

/// Age from which waiting does not help a degraded cluster, in milliseconds.
const OLD: u64 = 15 * 60_000;

pub(crate) fn check_status(facts: &Facts) -> Vec<Finding> {
    let Some(status) = &facts.cluster.status else {
        let log = "kubectl -n stayput logs deployment/stayput-reconciler";
        return vec![Finding::error("not_processed", facts.object(), NOT_PROCESSED, log)];
    };
    let is_behind = status.observed_generation < facts.cluster.metadata.generation;
    let behind = is_behind.then(|| {
        let message = "the reconciler has not seen the last change of the spec yet";
        Finding::warning("status_behind", facts.object(), message, look(facts))
    });
    behind.into_iter().collect()
}

fn look(facts: &Facts) -> String {
    format!("kubectl stayput -n {} status {}", facts.namespace(), facts.name())
}

/// A finding for the conditions that are not as they should be, unless `found` has one with their reason as its
/// code. Those with the same reason and message are one.
pub(crate) fn conditions(facts: &Facts, found: &[Finding]) -> Vec<Finding> {
    let conditions = facts.cluster.status.iter().flat_map(|status| &status.report.conditions);
    let mut groups: Vec<(Severity, Vec<&str>, &Condition)> = Vec::new();
    for one in conditions.filter(|one| !found.iter().any(|found| found.code == one.reason)) {
        let Some(severity) = severity(facts, one) else { continue };
        let is_same =
            |other: &Condition| (&other.reason, &other.message) == (&one.reason, &one.message);
        match groups.iter_mut().find(|(_, _, other)| is_same(other)) {
            Some((worst, kinds, _)) => {
                *worst = severity.min(*worst);
                kinds.push(&one.kind);
            }
            None => groups.push((severity, vec![&one.kind], one)),
        }
    }
    let finding = |(severity, kinds, one): (Severity, Vec<&str>, &Condition)| {
        let since = rounded_duration(facts.now.since(one.last_transition_time) / 1000);
        let message = format!(
            "{} {} for {since} ({}): {}",
            kinds.join(" and "),
            one.status,
            one.reason,
            one.message
        );
        let page = runbook::about(&one.reason)
            .map(|_| format!("\nkubectl stayput runbook {}", one.reason));
        let remedy = look(facts) + &page.unwrap_or_default();
        Finding { severity, ..Finding::error("condition", facts.object(), message, remedy) }
    };
    groups.into_iter().map(finding).collect()
}

/// How bad a condition is, unless it is as it should be. `Ready` only says again what others say.
fn severity(facts: &Facts, condition: &Condition) -> Option<Severity> {
    let age = facts.now.since(condition.last_transition_time);
    match (condition.kind.as_str(), condition.status.as_str()) {
        ("Stalled", "True") | ("Available", "False") => Some(Severity::Error),
        ("Degraded", "True") if age >= OLD => Some(Severity::Error),
        ("Degraded" | "Blocked" | "PredicatesDisabled", "True")
        | ("Available", "Unknown")
        | ("CertificatesValid", "False") => Some(Severity::Warning),
        _ => None,
    }
}

/// A Secret that the spec names.
pub(crate) struct Named<'a> {
    field: &'static str,
    pub(crate) name: &'a str,
    use_: Use,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Ca,
    Engine,
    JwtKey,
    Certificate,
}

pub(crate) fn check_credentials(facts: &Facts) -> Vec<Finding> {
    let spec = facts.cluster.completed_spec();
    named_secrets(&spec).iter().flat_map(|named| of_secret(facts, named)).collect()
}

/// The Secrets that the spec names.
pub(crate) fn named_secrets(spec: &SearchClusterSpec) -> Vec<Named<'_>> {
    let auth = &spec.manager.auth;
    let all = [
        ("spec.engine.credentialsSecret", spec.engine.credentials_secret.as_deref(), Use::Engine),
        ("spec.engine.caSecret", spec.engine.ca_secret.as_deref(), Use::Ca),
        ("spec.manager.caSecret", Some(spec.manager.ca_secret.as_str()), Use::Ca),
        ("spec.manager.auth.jwtKeySecret", auth.jwt_key_secret.as_deref(), Use::JwtKey),
        (
            "spec.manager.auth.clientCertificateSecret",
            auth.client_certificate_secret.as_deref(),
            Use::Certificate,
        ),
    ];
    all.into_iter()
        .filter_map(|(field, name, use_)| {
            let name = name.filter(|name| !name.is_empty())?;
            Some(Named { field, name, use_ })
        })
        .collect()
}

fn of_secret(facts: &Facts, named: &Named<'_>) -> Vec<Finding> {
    let (namespace, cluster) = (facts.namespace(), facts.name());
    let Named { field, name, use_ } = *named;
    let object = format!("Secret/{name}");
    let secret = match facts.secrets.get(name) {
        None => return Vec::new(),
        Some(Err(unknown)) => {
            let remedy = format!("kubectl -n {namespace} auth can-i get secret/{name}");
            return vec![Finding::unknown("secret", object, &unknown.message, remedy)];
        }
        Some(Ok(None)) => {
            let message = format!("{field} names it, and it is not there");
            let remedy = format!("kubectl -n {namespace} get secrets");
            return vec![Finding::error("secret_absent", object, message, remedy)];
        }
        Some(Ok(Some(secret))) => secret,
    };
    let mut found = Vec::new();
    let missing = missing(secret, use_);
    if !missing.is_empty() {
        let message = format!("{field} needs the key {} in it", missing.join(" and "));
        let remedy = format!("kubectl -n {namespace} describe secret {name}");
        found.push(Finding::error("secret_key", &object, message, remedy));
    }
    let none = BTreeMap::new();
    let annotations = secret.metadata.annotations.as_ref().unwrap_or(&none);
    if use_ != Use::Ca
        && let Err(refused) = allows(namespace, name, annotations, cluster)
    {
        let message = format!("it does not allow its use by SearchCluster {cluster}");
        found.push(Finding::error("not_allowed", &object, message, refused.command));
    }
    found
}

/// The needed keys that are missing.
fn missing(secret: &Secret, use_: Use) -> Vec<&'static str> {
    let has = |key: &str| secret.data.as_ref().is_some_and(|data| data.contains_key(key));
    let needed: &[&str] = match use_ {
        Use::Ca => &[key::CA],
        Use::Engine => engine_keys(has).names(),
        Use::JwtKey => &[key::JWT],
        Use::Certificate => &[key::TLS_CERT, key::TLS_KEY],
    };
    needed.iter().copied().filter(|key| !has(key)).collect()
}

pub(crate) fn check_certificates(facts: &Facts) -> Vec<Finding> {
    let serving = facts
        .known_pods()
        .iter()
        .filter_map(|pod| serving_secret(pod, facts.cluster.completed_spec().manager.port));
    let serving: BTreeMap<String, ()> = serving.map(|name| (name, ())).collect();
    let mut found = Vec::new();
    for (name, secret) in &facts.secrets {
        match secret {
            Ok(Some(secret)) => found.extend(certificate_of(facts, name, secret)),
            // Those that the spec names are told by the group of the credentials.
            Err(unknown) if serving.contains_key(name) => {
                let remedy =
                    format!("kubectl -n {} auth can-i get secret/{name}", facts.namespace());
                let object = format!("Secret/{name}");
                found.push(Finding::unknown("certificate", object, &unknown.message, remedy));
            }
            Ok(None) | Err(_) => {}
        }
    }
    found
}

fn certificate_of(facts: &Facts, name: &str, secret: &Secret) -> Option<Finding> {
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
    let of = if is_bundle { Validity::of_last } else { Validity::of };
    let validity = chain.as_deref().and_then(of);
    let Some(validity) = validity else {
        let message = format!("{at} in it is no certificate in PEM that can be read");
        return Some(Finding::error("certificate", object, message, look));
    };
    let message = |how: &str| format!("{at} in it {how} at {}", date(validity.not_after));
    match validity.expiry(facts.now.0 / 1000) {
        Expiry::Later => None,
        Expiry::Soon => Some(Finding::warning("certificate", object, message("expires"), look)),
        Expiry::Over => Some(Finding::error("certificate", object, message("has expired"), look)),
    }
}

/// True if the spec names the Secret as that of a CA.
fn is_ca(facts: &Facts, name: &str) -> bool {
    let spec = facts.cluster.completed_spec();
    spec.engine.ca_secret.as_deref() == Some(name) || spec.manager.ca_secret == name
}

pub(crate) fn check_disruption(facts: &Facts) -> Vec<Finding> {
    let (namespace, name) = (facts.namespace(), facts.name());
    let get = format!("kubectl -n {namespace} get poddisruptionbudgets");
    let budgets = match &facts.budgets {
        Ok(budgets) => budgets,
        Err(unknown) => {
            return vec![Finding::unknown("budget", facts.object(), &unknown.message, get)];
        }
    };
    let mut found = Vec::new();
    for pod in facts.known_pods() {
        let of_pod: Vec<String> = budgets
            .iter()
            .filter(|budget| {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                selector.is_some_and(|selector| selects(selector, pod.labels()))
            })
            .map(ResourceExt::name_any)
            .collect();
        match of_pod.as_slice() {
            [] => found.push(Finding::note(
                "no_budget",
                facts.object(),
                "no PodDisruptionBudget selects its pods: a drain of a Kubernetes node may take \
                     a second node down while one is restarted",
                format!(
                    "kubectl -n {namespace} create poddisruptionbudget {name} \
                         --max-unavailable=1 --selector={}",
                    shell_word(&selector(facts))
                ),
            )),
            [_] => {}
            several => found.push(Finding::warning(
                "several_budgets",
                format!("Pod/{}", pod.name_any()),
                format!("{} select it: Kubernetes can evict no such pod", several.join(" and ")),
                get.clone(),
            )),
        }
    }
    found.dedup();
    found
}

fn selector(facts: &Facts) -> String {
    let spec = facts.cluster.completed_spec();
    let selector = &spec.pods.selector;
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let all: Vec<String> =
        labels.chain(selector.match_expressions.iter().flatten().map(requirement)).collect();
    all.join(",")
}

/// A requirement in the syntax of kubectl's options.
fn requirement(one: &LabelSelectorRequirement) -> String {
    let key = &one.key;
    let values = one.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(",");
    match one.operator.as_str() {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.clone(),
    }
}
