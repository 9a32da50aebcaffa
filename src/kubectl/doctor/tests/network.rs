//! NetworkPolicies, as the Kubernetes documentation describes them.

use serde_json::{Value, json};

use crate::doctor;
use crate::doctor::Severity::{Error, Unknown, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::healthy::{from, healthy};

/// What is said about managers and engine when this policy is in the namespace of the pods: severities
/// for the ports 9199 and 9200 of the first pod.
fn said(spec: Value) -> [Option<doctor::Severity>; 2] {
    let mut facts = healthy();
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    facts.policies = Ok(vec![from(policy)]);
    let found = findings(&facts);
    ["9199", "9200"].map(|port| {
        let is_it = |text: &str| text.contains("logs-0") && text.contains(port);
        let mut all = found.iter().filter(|one| one.code == "network");
        all.find(|one| is_it(&format!("{} {}", one.message, one.remedy))).map(|one| one.severity)
    })
}

#[test] // proves DOCTOR-1
fn who_is_selected_is_reached_only_by_what_is_allowed() {
    // A manager that answers all the same shows that the policy is not enforced.
    let closed = [Some(Warning), Some(Error)];
    let pods = json!({"matchLabels": {"app": "logs"}});
    let stayput = json!({"matchLabels": {"kubernetes.io/metadata.name": "stayput"}});
    let reconciler = json!({"matchLabels": {"app.kubernetes.io/name": "stayput-reconciler"}});
    let with = |ingress: Value| json!({"podSelector": pods, "ingress": ingress});
    for (what, spec, expected) in [
        ("other pods", json!({"podSelector": {"matchLabels": {"app": "x"}}}), [None; 2]),
        ("nothing is allowed", json!({"podSelector": {}}), closed),
        ("egress alone", json!({"podSelector": {}, "policyTypes": ["Egress"]}), [None; 2]),
        ("everything", with(json!([{}])), [None; 2]),
        ("one port", with(json!([{"ports": [{"port": 9199}]}])), [None, Some(Error)]),
        (
            "a port by its name",
            with(json!([{"ports": [{"port": "stayput"}]}])),
            [None, Some(Error)],
        ),
        ("a range", with(json!([{"ports": [{"port": 9000, "endPort": 9299}]}])), [None; 2]),
        ("UDP", with(json!([{"ports": [{"port": 9199, "protocol": "UDP"}]}])), closed),
        ("its own namespace", with(json!([{"from": [{"podSelector": {}}]}])), closed),
        ("our namespace", with(json!([{"from": [{"namespaceSelector": stayput}]}])), [None; 2]),
        (
            "our pods in all namespaces",
            with(json!([{"from": [{"namespaceSelector": {}, "podSelector": reconciler}]}])),
            [None; 2],
        ),
        (
            "other pods in our namespace",
            with(json!([{"from": [{"namespaceSelector": stayput, "podSelector": pods}]}])),
            closed,
        ),
        (
            "addresses",
            with(json!([{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}])),
            [Some(Unknown); 2],
        ),
    ] {
        assert_eq!(said(spec), expected, "{what}");
    }
}

#[test]
fn what_does_not_let_it_through_is_named_with_the_command() {
    let mut facts = healthy();
    let policy = json!({"metadata": {"name": "closed"}, "spec": {"podSelector": {}}});
    facts.policies = Ok(vec![from(policy)]);
    let found = findings(&facts);
    let finding = found
        .iter()
        .find(|one| one.message.contains("9200 (engine) of logs-0, logs-1, logs-2"))
        .unwrap();
    assert_eq!(finding.object, "NetworkPolicy/closed");
    for part in [
        "kubectl -n search patch networkpolicy closed --type json",
        r#""path":"/spec/ingress""#,
        r#""from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"stayput"}}}]"#,
    ] {
        assert!(finding.remedy.contains(part), "{}", finding.remedy);
    }
}

/// `deploy/` opens the usual ports alone.
#[test]
fn another_port_must_be_opened_for_the_reconciler_as_well() {
    let mut facts = healthy();
    facts.change_cluster(|it| it["spec"]["engine"]["port"] = json!(9243));
    let found = findings(&facts);
    assert!(!found.is_empty());
    for finding in found {
        assert_eq!(
            (finding.object.as_str(), finding.severity),
            ("NetworkPolicy/stayput-reconciler", Error)
        );
        assert!(finding.remedy.contains("kubectl -n stayput patch"), "{}", finding.remedy);
        assert!(finding.remedy.contains("/spec/egress/-"), "{}", finding.remedy);
    }
}
