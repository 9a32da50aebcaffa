//! Changes of what Secrets and ConfigMaps contain.

use std::collections::BTreeMap;

use serde_json::json;

use super::{template, with_content};
use crate::{Content, Ignore, Source, SourceKind, UpdateStep};

fn config() -> Source {
    Source { kind: SourceKind::Secret, name: "logs-config".to_owned() }
}

fn content(files: &[(&str, &str)], ignore: Option<&str>) -> Content {
    let digests: BTreeMap<String, String> =
        files.iter().map(|(key, digest)| (key.to_string(), digest.to_string())).collect();
    let mut content = Content::default();
    content.add(config(), digests, Ignore::parse(ignore));
    content
}

fn step(new: &Content, old: &Content) -> UpdateStep {
    with_content(&template(), new, &template(), old).step
}

#[test]
fn another_content_of_a_mounted_object_is_a_restart() {
    let old = content(&[("a", "1"), ("b", "1")], None);
    assert_eq!(step(&old, &old), UpdateStep::None);
    assert_eq!(step(&content(&[("a", "2"), ("b", "1")], None), &old), UpdateStep::Restart);
    assert_eq!(step(&content(&[("a", "1")], None), &old), UpdateStep::Restart);
    assert_eq!(
        step(&content(&[("a", "1"), ("b", "1"), ("c", "1")], None), &old),
        UpdateStep::Restart
    );
    let update =
        with_content(&template(), &content(&[("a", "2"), ("b", "1")], None), &template(), &old);
    let field = "Secret logs-config, key a, in spec.containers[opensearch].volumeMounts[/config]";
    assert_eq!(update.because[0].field, field);
}

#[test]
fn an_object_that_is_absent_is_never_a_change() {
    let old = content(&[("a", "1")], None);
    assert_eq!(step(&Content::default(), &old), UpdateStep::None);
    assert_eq!(step(&old, &Content::default()), UpdateStep::None);
}

#[test]
fn an_object_that_nothing_mounts_is_never_a_change() {
    let other = |digest: &str| {
        let mut content = content(&[("a", "1")], None);
        let source = Source { kind: SourceKind::ConfigMap, name: "logs-config".to_owned() };
        content.add(source, [("a".to_owned(), digest.to_owned())].into(), Ignore::Nothing);
        content
    };
    assert_eq!(step(&other("1"), &other("2")), UpdateStep::None);
}

#[test]
fn the_way_a_key_gets_into_the_pod_decides() {
    let mut with_variable = template();
    let reference = json!({"secretKeyRef": {"name": "logs-config", "key": "a"}});
    with_variable["spec"]["containers"][0]["env"] = json!([{"name": "A", "valueFrom": reference}]);
    let old = content(&[("a", "1"), ("b", "1")], None);
    let step = |new: &Content| with_content(&with_variable, new, &with_variable, &old).step;
    assert_eq!(step(&content(&[("a", "2"), ("b", "1")], None)), UpdateStep::Container);
    assert_eq!(step(&content(&[("a", "1"), ("b", "2")], None)), UpdateStep::Restart);
}

#[test] // proves UPDATE-60
fn the_annotation_restarts_nothing_when_it_comes_and_when_it_goes() {
    let old = content(&[("a", "1"), ("b", "1")], None);
    for ignore in ["true", "a", " b , a "] {
        let changed = content(&[("a", "2"), ("b", "1")], Some(ignore));
        assert_eq!(step(&changed, &old), UpdateStep::None, "{ignore}");
        let noted = old.noted(&changed);
        assert_eq!(
            step(&content(&[("a", "2"), ("b", "1")], None), &noted),
            UpdateStep::None,
            "{ignore}"
        );
        // What changes from then on counts.
        let next = content(&[("a", "3"), ("b", "1")], None);
        assert_eq!(step(&next, &noted), UpdateStep::Restart, "{ignore}");
    }
    // The other key was not ignored, and is not forgotten.
    let changed = content(&[("a", "2"), ("b", "2")], Some("a"));
    assert_eq!(step(&changed, &old), UpdateStep::Restart);
    assert_eq!(step(&changed, &old.noted(&changed)), UpdateStep::Restart);
    let removed = content(&[("b", "1")], Some("a"));
    assert_eq!(step(&content(&[("b", "1")], None), &old.noted(&removed)), UpdateStep::None);
}
