//! What a container was started with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::template;
use crate::{
    Age, Compared, Content, Ignore, Source, SourceKind, Started, UpdateStep, Use, compare_content,
    uses,
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
    compare_content(&used(), wanted, &ages, container(1000, restarts), noted)
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

#[test]
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
    let first = compare_content(&used(), &content("a", None), &ages, started, None);
    assert!(first.now.unwrap().contains("HEAP"));
}

#[test]
fn a_container_that_the_kubelet_made_by_itself_has_read_what_was_there() {
    let note = compared(&content("a", None), Some(500), 0, None).now.unwrap();
    let after = compared(&content("b", None), Some(900), 1, Some(&note));
    assert_eq!(after.differences, []);
    assert_eq!(after.now.unwrap(), r#"{"restarts":1,"content":{"ConfigMap env":{"HEAP":"b"}}}"#);
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
