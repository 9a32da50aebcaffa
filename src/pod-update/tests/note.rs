//! What a container was started with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::template;
use crate::{
    Age, Compared, Content, Ignore, Other, Source, SourceKind, Started, UpdateStep, Use,
    compare_content, uses,
};

fn environment() -> Source {
    Source { kind: SourceKind::ConfigMap, name: "env".to_owned() }
}

fn used() -> BTreeSet<Use> {
    let mut template = template();
    let reference = json!({"configMapKeyRef": {"name": "env", "key": "HEAP"}});
    template["spec"]["containers"][0]["env"] = json!([{"name": "HEAP", "valueFrom": reference}]);
    uses(&template, "opensearch")
}

fn content(heap: &str, ignore: Option<&str>) -> Content {
    let mut content = Content::default();
    let digests = BTreeMap::from([
        ("HEAP".to_owned(), heap.to_owned()),
        ("not-used".to_owned(), heap.to_owned()),
    ]);
    content.add(environment(), digests, Ignore::parse(ignore));
    content
}

/// The object was made at 100 and changed last at `changed`; the container was started at 1000.
fn compared(
    wanted: &Content,
    changed: Option<i64>,
    restarts: i32,
    noted: Option<&str>,
) -> Compared {
    let ages = BTreeMap::from([(environment(), Age { created: 100, changed })]);
    compare_content(&used(), &[], wanted, &ages, container(1000, restarts), noted)
}

/// A container of a pod that was made right before 1000, without init containers.
fn container(at: i64, restarts: i32) -> Started {
    Started { at, restarts, pod: 998, init: None }
}

#[test]
fn it_is_noted_once_and_a_change_needs_a_container() {
    let first = compared(&content("a", None), Some(500), 0, None);
    assert_eq!(first.differences, []);
    let note = first.now.unwrap();
    assert_eq!(note, r#"{"restarts":0,"content":{"ConfigMap env":{"HEAP":"a"}}}"#);
    let again = compared(&content("a", None), Some(500), 0, Some(&note));
    assert_eq!((again.differences, again.now), (vec![], None));
    let changed = compared(&content("b", None), Some(2000), 0, Some(&note));
    let [difference] = &changed.differences[..] else { panic!("{changed:?}") };
    assert_eq!(difference.step, UpdateStep::Container);
    assert_eq!(
        difference.field,
        "ConfigMap env, key HEAP, in spec.containers[opensearch].env[HEAP]"
    );
    assert_eq!(changed.now, None, "it still runs on the old one");
    // The next container has it, and is known by its number.
    let next = compared(&content("b", None), Some(2000), 1, changed.next.as_deref());
    assert_eq!((next.differences, next.now), (vec![], None));
}

#[test] // proves UPDATE-67
fn what_may_have_changed_since_the_start_is_unknown_and_no_change() {
    for changed in [None, Some(995), Some(1000), Some(1001)] {
        let first = compared(&content("a", None), changed, 0, None);
        assert_eq!(first.differences, [], "{changed:?}");
        let note = first.now.unwrap();
        assert_eq!(note, r#"{"restarts":0,"content":{}}"#, "{changed:?}");
        let later = compared(&content("b", None), Some(2000), 0, Some(&note));
        assert_eq!((later.differences, later.now), (vec![], None), "{changed:?}");
    }
    // Nobody changed it since it was made, right before the container.
    let ages = BTreeMap::from([(environment(), Age { created: 1000, changed: Some(1000) })]);
    let started = container(1000, 0);
    let first = compare_content(&used(), &[], &content("a", None), &ages, started, None);
    assert!(first.now.unwrap().contains("HEAP"));
}

#[test] // proves UPDATE-67
fn a_container_that_the_kubelet_made_by_itself_has_read_what_was_there() {
    let note = compared(&content("a", None), Some(500), 0, None).now.unwrap();
    let after = compared(&content("b", None), Some(900), 1, Some(&note));
    assert_eq!(after.differences, []);
    assert_eq!(after.now.unwrap(), r#"{"restarts":1,"content":{"ConfigMap env":{"HEAP":"b"}}}"#);
}

/// The kubelet of a pod that is there may give what it has read before to another container.
#[test] // proves UPDATE-68
fn a_container_made_soon_after_a_change_may_have_the_content_of_the_last_one() {
    let of_old_pod = |changed, restarts, noted: Option<&str>| {
        let ages = BTreeMap::from([(environment(), Age { created: 100, changed: Some(changed) })]);
        let started = Started { at: 1000, restarts, pod: 300, init: None };
        compare_content(&used(), &[], &content("b", None), &ages, started, noted)
    };
    let note = r#"{"restarts":0,"content":{"ConfigMap env":{"HEAP":"a"}}}"#;
    let soon = of_old_pod(850, 1, Some(note));
    assert_eq!(soon.differences.len(), 1, "it may have a");
    let noted = soon.now.unwrap();
    assert_eq!(noted, r#"{"restarts":1,"content":{"ConfigMap env":{"HEAP":"a"}}}"#);
    assert_eq!(of_old_pod(850, 1, Some(&noted)).differences.len(), 1);
    assert_eq!(of_old_pod(850, 2, soon.next.as_deref()).differences, [], "ours has b");
    let later = of_old_pod(800, 1, Some(note));
    assert_eq!(later.differences, []);
    assert_eq!(later.now.unwrap(), r#"{"restarts":1,"content":{"ConfigMap env":{"HEAP":"b"}}}"#);
    assert_eq!(of_old_pod(850, 0, None).now.unwrap(), r#"{"restarts":0,"content":{}}"#, "unknown");
}

/// No step makes another container beside the engine's for what it has read.
#[test] // proves UPDATE-67
fn what_another_container_was_started_with_needs_another_pod() {
    let mut template = template();
    let reference = json!({"configMapKeyRef": {"name": "env", "key": "HEAP"}});
    template["spec"]["containers"][1]["env"] = json!([{"name": "HEAP", "valueFrom": reference}]);
    let others = |restarts, at| {
        let started = Started { at, restarts, pod: 998, init: None };
        [Other { name: "exporter".into(), started, uses: uses(&template, "exporter") }]
    };
    let compared = |wanted: &str, changed, others: &[Other], noted: Option<&str>| {
        let ages = BTreeMap::from([(environment(), Age { created: 100, changed: Some(changed) })]);
        let none = BTreeSet::new();
        compare_content(&none, others, &content(wanted, None), &ages, container(1000, 0), noted)
    };
    let first = others(0, 1000);
    let note = compared("a", 500, &first, None).now.unwrap();
    let expected = r#"{"restarts":0,"content":{},"others":{"exporter":{"restarts":0,"content":{"ConfigMap env":{"HEAP":"a"}}}}}"#;
    assert_eq!(note, expected);
    assert_eq!(compared("a", 500, &first, Some(&note)).now, None);
    let changed = compared("b", 2000, &first, Some(&note));
    let [difference] = &changed.differences[..] else { panic!("{changed:?}") };
    assert_eq!(difference.step, UpdateStep::Replace);
    assert_eq!(difference.field, "ConfigMap env, key HEAP, in spec.containers[exporter].env[HEAP]");
    assert_eq!(changed.now, None);
    // The engine's next container changes nothing of it; the kubelet's own restart of it does.
    assert_eq!(compared("b", 2000, &first, changed.next.as_deref()).differences.len(), 1);
    let again = compared("b", 2000, &others(1, 3000), Some(&note));
    assert_eq!(again.differences, []);
    assert!(again.now.unwrap().contains(r#""HEAP":"b""#));
    let unknown = compared("b", 2000, &others(1, 2100), Some(&note));
    assert_eq!(unknown.differences, [], "it may have read either");
}

/// Digests tell objects apart, so that a password cannot be guessed by one.
#[test] // proves UPDATE-69
fn an_object_that_is_made_again_with_the_same_content_restarts_nothing() {
    let note = compared(&content("a", None), Some(500), 0, None).now.unwrap();
    let earlier = |digest: &str| {
        let mut again = content("b", None);
        let digests = [("HEAP".to_owned(), BTreeSet::from([digest.to_owned()]))];
        again.add_earlier(environment(), digests.into());
        compared(&again, Some(2000), 0, Some(&note))
    };
    let same = earlier("a");
    assert_eq!(same.differences, []);
    // It is noted, since the next reconciler does not know the earlier object.
    assert_eq!(same.now.unwrap(), r#"{"restarts":0,"content":{"ConfigMap env":{"HEAP":"b"}}}"#);
    assert_eq!(earlier("c").differences.len(), 1, "a pod with another content");
}

#[test]
fn an_object_that_is_absent_is_kept_in_mind_and_no_change() {
    let note = compared(&content("a", None), Some(500), 0, None).now.unwrap();
    let gone = compared(&Content::default(), Some(500), 0, Some(&note));
    assert_eq!((gone.differences, gone.now), (vec![], None));
    let back = compared(&content("b", None), Some(2000), 0, Some(&note));
    assert_eq!(back.differences.len(), 1);
}

#[test]
fn to_ignore_it_and_not_to_ignore_it_any_more_restarts_nothing() {
    let note = compared(&content("a", None), Some(500), 0, None).now.unwrap();
    let ignored = compared(&content("b", Some("true")), Some(2000), 0, Some(&note));
    assert_eq!(ignored.differences, []);
    let note = ignored.now.unwrap();
    let counted = compared(&content("b", None), Some(3000), 0, Some(&note));
    assert_eq!((counted.differences, counted.now), (vec![], None));
    let next = compared(&content("c", None), Some(4000), 0, Some(&note));
    assert_eq!(next.differences.len(), 1);
}

#[test]
fn what_is_no_note_is_read_as_none() {
    for text in ["", "{}", "nonsense", r#"{"restarts":0,"content":{"Pod a":{}}}"#] {
        let first = compared(&content("a", None), Some(500), 0, Some(text));
        assert!(first.now.unwrap().contains("HEAP"), "{text}");
    }
}
