//! Annotations and labels of operators.

use serde_json::json;

use super::{template, update};
use crate::UpdateStep::{self, Container, None, Relabel, Replace, Restart};

fn step(map: &str, name: &str) -> UpdateStep {
    let of = |value: &str| {
        let mut template = template();
        template["metadata"][map][name] = json!(value);
        template
    };
    let added = update(&of("a"), &template());
    let changed = update(&of("b"), &of("a"));
    let removed = update(&template(), &of("a"));
    assert_eq!(added.step, changed.step, "{name}");
    assert_eq!(removed.step, changed.step, "{name}");
    if changed.step != None {
        assert_eq!(changed.because[0].field, format!("metadata.{map}[{name:?}]"));
        assert_eq!(changed.because[0].from.as_deref(), Some("a"));
    }
    changed.step
}

#[test] // proves UPDATE-85
fn each_annotation_of_an_operator_has_its_step() {
    for (name, expected) in [
        ("kubectl.kubernetes.io/restartedAt", Restart),
        ("eck.k8s.elastic.co/restart-trigger", Restart),
        ("elasticsearch.k8s.elastic.co/config-hash", Restart),
        ("policy.k8s.elastic.co/elasticsearch-config-mounts-hash", Restart),
        ("elasticsearch.k8s.elastic.co/monitoring-config-hash", Replace),
        ("elasticsearch.k8s.elastic.co/self-signed-transport-cert-disabled", Replace),
        ("update.k8s.elastic.co/timestamp", Relabel),
        ("opensearch.org/config", Container),
        ("opensearch.org/last-applied", Relabel),
        ("opster.io/config", Container),
        // Beats and other agents look for these at the pods that run.
        ("co.elastic.logs/module", Relabel),
        // Nobody knows what an operator may mean one day.
        ("eck.k8s.elastic.co/tomorrow", Replace),
        ("elasticsearch.k8s.elastic.co/tomorrow", Replace),
        ("opensearch.org/tomorrow", Replace),
        ("opster.io/tomorrow", Replace),
        ("opensearch.opster.io/tomorrow", Replace),
        ("notopster.io/tomorrow", Relabel),
        ("example.org/opster.io", Relabel),
    ] {
        assert_eq!(step("annotations", name), expected, "{name}");
    }
}

#[test] // proves UPDATE-85
fn labels_of_operators_are_patched() {
    for name in [
        "elasticsearch.k8s.elastic.co/node-master",
        "elasticsearch.k8s.elastic.co/version",
        "opensearch.org/opensearch-nodepool",
        "opster.io/opensearch-nodepool",
        "opensearch.role",
    ] {
        assert_eq!(step("labels", name), Relabel, "{name}");
    }
}
