//! What only init containers read: another container does not read it again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::template;
use crate::{
    Age, Compared, Content, Ignore, Source, SourceKind, Started, UpdateStep, Use, compare_content,
    uses,
};

fn keystore() -> Source {
    Source { kind: SourceKind::Secret, name: "keystore".to_owned() }
}

/// An init container mounts a Secret.
fn with_keystore() -> Value {
    let mut template = template();
    let spec = &mut template["spec"];
    spec["initContainers"][0]["volumeMounts"] =
        json!([{"name": "keystore", "mountPath": "/keystore"}]);
    let volume = json!({"name": "keystore", "secret": {"secretName": "keystore"}});
    spec["volumes"].as_array_mut().expect("a list").push(volume);
    template
}

/// An init container mounts a Secret, and the engine's container reads a variable of a ConfigMap.
fn used() -> BTreeSet<Use> {
    let mut template = with_keystore();
    let reference = json!({"configMapKeyRef": {"name": "env", "key": "HEAP"}});
    template["spec"]["containers"][0]["env"] = json!([{"name": "HEAP", "valueFrom": reference}]);
    let mut uses = uses(&template, "opensearch");
    uses.retain(|used| used.source.name != "logs-config");
    uses
}

fn content(password: &str, ignore: Option<&str>) -> Content {
    let mut content = Content::default();
    let digests = BTreeMap::from([("password".to_owned(), password.to_owned())]);
    content.add(keystore(), digests, Ignore::parse(ignore));
    content
}

/// A pod that was made at 1000: its init container was started at 1005, its engine's at 1020.
const FIRST: Started = Started { at: 1020, restarts: 0, pod: 1000, init: Some(1005) };

/// The Secret was made at 100 and changed last at `changed`.
fn compared(wanted: &Content, changed: i64, started: Started, noted: Option<&str>) -> Compared {
    let ages = BTreeMap::from([(keystore(), Age { created: 100, changed: Some(changed) })]);
    compare_content(&used(), &[], wanted, &ages, started, noted)
}

fn first_note() -> String {
    compared(&content("a", None), 500, FIRST, None).now.unwrap()
}

#[test] // proves UPDATE-67
fn a_change_of_it_needs_another_pod_however_often_the_container_is_made_anew() {
    let note = first_note();
    let init = r#""init":{"started":1005,"content":{"Secret keystore":{"password":"a"}}}"#;
    assert_eq!(note, format!(r#"{{"restarts":0,"content":{{}},{init}}}"#));
    assert_eq!(compared(&content("a", None), 500, FIRST, Some(&note)).now, None);
    // The engine's container was made anew, which has run no init container.
    let again = Started { at: 4000, restarts: 1, ..FIRST };
    for started in [FIRST, again, Started { init: None, ..again }] {
        let changed = compared(&content("b", None), 2000, started, Some(&note));
        let [difference] = &changed.differences[..] else { panic!("{changed:?}") };
        assert_eq!(difference.step, UpdateStep::Replace);
        assert_eq!(
            difference.field,
            "Secret keystore, key password, in spec.initContainers[sysctl].volumeMounts[/keystore]"
        );
        // What is written of this pod is what it has read, also of its next container.
        let written = changed.now.as_ref().unwrap_or(&note);
        assert!(written.contains(init), "{written}");
        assert!(changed.next.as_ref().unwrap().contains(init), "{changed:?}");
        let anew = r#""init":{"content":{"Secret keystore":{"password":"b"}}}"#;
        assert!(changed.anew.as_ref().unwrap().contains(anew), "{changed:?}");
    }
}

#[test] // proves UPDATE-67
fn init_containers_that_ran_again_have_read_it_again() {
    // The Kubernetes node was started anew, long after the change.
    let booted = Started { at: 3020, restarts: 1, pod: 1000, init: Some(3005) };
    let after = compared(&content("b", None), 2000, booted, Some(&first_note()));
    assert_eq!(after.differences, []);
    let init = r#""init":{"started":3005,"content":{"Secret keystore":{"password":"b"}}}"#;
    assert!(after.now.as_ref().unwrap().contains(init), "{after:?}");
    // Right after it the old content may have been mounted still: it is unknown, and no change.
    let soon = compared(&content("b", None), 2900, booted, Some(&first_note()));
    assert_eq!(soon.differences, []);
    assert!(soon.now.unwrap().contains(r#""init":{"started":3005,"content":{}}"#));
}

#[test] // proves UPDATE-67
fn what_may_have_changed_since_the_pod_was_made_is_unknown_and_no_change() {
    for changed in [995, 1001, 1004, 1500] {
        let first = compared(&content("a", None), changed, FIRST, None);
        assert_eq!(first.differences, [], "{changed}");
        let note = first.now.unwrap();
        assert!(note.contains(r#""init":{"started":1005,"content":{}}"#), "{note}");
        let later = compared(&content("b", None), 2000, FIRST, Some(&note));
        assert_eq!((later.differences, later.now), (vec![], None), "{changed}");
    }
    // A Secret that came after the pod, which waited for it, and that nobody has changed since.
    let ages = BTreeMap::from([(keystore(), Age { created: 1003, changed: Some(1003) })]);
    let first = compare_content(&used(), &[], &content("a", None), &ages, FIRST, None);
    assert!(first.now.unwrap().contains("password"));
}

#[test]
fn to_ignore_it_and_not_to_ignore_it_any_more_replaces_nothing() {
    let ignored = compared(&content("b", Some("password")), 2000, FIRST, Some(&first_note()));
    assert_eq!(ignored.differences, []);
    let note = ignored.now.unwrap();
    let counted = compared(&content("b", None), 2000, FIRST, Some(&note));
    assert_eq!((counted.differences, counted.now), (vec![], None));
}

#[test]
fn a_note_of_an_earlier_version_is_completed() {
    let noted = r#"{"restarts":0,"content":{}}"#;
    let first = compared(&content("a", None), 500, FIRST, Some(noted));
    assert_eq!(first.differences, []);
    assert_eq!(first.now.as_deref(), Some(&*first_note()));
}

#[test]
fn a_key_that_the_engine_reads_too_needs_no_other_pod() {
    let mut template = with_keystore();
    let reference = json!({"secretKeyRef": {"name": "keystore", "key": "password"}});
    template["spec"]["containers"][0]["env"] =
        json!([{"name": "PASSWORD", "valueFrom": reference}]);
    let uses = uses(&template, "opensearch");
    let compared = |password: &str, other: &str, noted: Option<&str>| {
        let mut wanted = Content::default();
        let digests = [("password", password), ("other", other)];
        let digests = digests.map(|(key, digest)| (key.to_owned(), digest.to_owned()));
        wanted.add(keystore(), digests.into(), Ignore::Nothing);
        let ages = BTreeMap::from([(keystore(), Age { created: 100, changed: Some(500) })]);
        compare_content(&uses, &[], &wanted, &ages, FIRST, noted)
    };
    let note = compared("a", "a", None).now.unwrap();
    let steps = |password: &str, other: &str| {
        let found = compared(password, other, Some(&note)).differences;
        found.into_iter().map(|difference| difference.step).collect::<Vec<_>>()
    };
    assert_eq!(steps("b", "a"), [UpdateStep::Container]);
    assert_eq!(steps("a", "b"), [UpdateStep::Replace]);
}
