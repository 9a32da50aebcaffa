//! When certificates end. It is the 21st of November 2026.

use serde_json::json;

use crate::doctor::Facts;
use crate::doctor::Severity::{Error, Unknown, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::each;
use crate::doctor::tests::healthy::{certificate, encoded, healthy, unknown};

fn ca(facts: &mut Facts, pem: &str) {
    facts.put_secret(json!({"metadata": {"name": "logs-ca"}, "data": {"ca.crt": encoded(pem)}}));
}

/// The managers serve what is in the Secret `logs-tls`.
fn serve(facts: &mut Facts) {
    facts.change_pod(|pod| {
        let container = &mut pod["spec"]["containers"][0];
        let variable = json!({"name": "STAYPUT_TLS_CERT", "value": "/tls/tls.crt"});
        container["env"].as_array_mut().unwrap().push(variable);
        let mount = json!({"name": "tls", "mountPath": "/tls"});
        container["volumeMounts"].as_array_mut().unwrap().push(mount);
        let volume = json!({"name": "tls", "secret": {"secretName": "logs-tls"}});
        pod["spec"]["volumes"].as_array_mut().unwrap().push(volume);
    });
}

#[test] // proves DOCTOR-1
fn their_end_is_said_in_time() {
    each(&[
        (
            "an expired CA",
            |facts| ca(facts, &certificate(2025)),
            Error,
            "certificate",
            "Secret/logs-ca",
            ["ca.crt in it has expired at 2025-11-25T00:00:00Z", r"jsonpath='{.data.ca\.crt}'"],
        ),
        (
            "a CA that ends in four days",
            |facts| ca(facts, &certificate(2026)),
            Warning,
            "certificate",
            "Secret/logs-ca",
            ["ca.crt in it expires at 2026-11-25T00:00:00Z", "openssl x509 -noout -enddate"],
        ),
        (
            "no certificate",
            |facts| ca(facts, "nonsense"),
            Error,
            "certificate",
            "Secret/logs-ca",
            ["no certificate in PEM", "get secret logs-ca"],
        ),
        (
            "the managers' certificate",
            |facts| {
                serve(facts);
                facts.put_secret(json!({
                    "metadata": {"name": "logs-tls"},
                    "data": {"tls.crt": encoded(&certificate(2026))},
                }));
            },
            Warning,
            "certificate",
            "Secret/logs-tls",
            ["tls.crt in it expires", "get secret logs-tls"],
        ),
        (
            "the managers' certificate, not read",
            |facts| {
                serve(facts);
                facts.secrets.insert("logs-tls".into(), Err(unknown()));
            },
            Unknown,
            "certificate",
            "Secret/logs-tls",
            ["forbidden", "auth can-i get secret/logs-tls"],
        ),
    ]);
}

#[test] // proves DOCTOR-1
fn of_several_cas_one_that_is_valid_is_enough() {
    let mut facts = healthy();
    ca(&mut facts, &(certificate(2025) + &certificate(2027)));
    assert_eq!(findings(&facts), []);
}
