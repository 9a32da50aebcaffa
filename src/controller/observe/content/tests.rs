//! A pod whose container reads a variable from a ConfigMap.

mod init;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use stayput_pod_update::{IGNORE, SourceKind};

use super::*;
use crate::observe::content::NOTED;
use crate::observe::content::Object;
use crate::pods::Reading;

fn pod(noted: Option<&str>, restarts: i32) -> PodFacts {
    of_policy(noted, restarts, None)
}

/// Its container has this restart policy of its own.
fn of_policy(noted: Option<&str>, restarts: i32, policy: Option<&str>) -> PodFacts {
    let engine = json!({"name": "opensearch", "restartPolicy": policy, "env": [heap()]});
    of_containers(noted, &json!([engine]), &json!([status("opensearch", restarts)]))
}

/// Its engine reads nothing when it is started, and a container beside it does.
fn with_exporter(noted: Option<&str>, restarts: i32) -> PodFacts {
    let containers = json!([{"name": "opensearch"}, {"name": "exporter", "env": [heap()]}]);
    let statuses = json!([status("opensearch", 0), status("exporter", restarts)]);
    of_containers(noted, &containers, &statuses)
}

/// A variable from the ConfigMap.
fn heap() -> Value {
    json!({"name": "HEAP", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "HEAP"}}})
}

/// Status of a running container.
fn status(name: &str, restarts: i32) -> Value {
    json!({
        "name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": restarts,
        "state": {"running": {"startedAt": "2026-11-22T10:00:00Z"}},
    })
}

/// A pod of a StatefulSet with these containers.
fn of_containers(noted: Option<&str>, containers: &Value, statuses: &Value) -> PodFacts {
    let object = json!({
        "metadata": {
            "name": "logs-0", "namespace": "n", "uid": "u", "resourceVersion": "1",
            "annotations": noted.map(|note| json!({annotation::CONTENT: note})),
            "labels": {"controller-revision-hash": "logs-1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "s",
                "controller": true,
            }],
        },
        "spec": {"containers": containers},
        "status": {"containerStatuses": statuses},
    });
    let pod: Pod = serde_json::from_value(object).unwrap();
    PodFacts::of(&pod, &Reading { updates: true, ..Reading::default() }).unwrap()
}

fn metadata(changed: &str, annotations: &Value) -> ObjectMeta {
    serde_json::from_value(json!({
        "name": "env", "uid": "known to few", "creationTimestamp": "2026-11-22T09:00:00Z",
        "annotations": annotations,
        "managedFields": [
            {"manager": "a", "time": "2026-11-22T09:00:00Z"},
            {"manager": "b", "time": changed},
        ],
    }))
    .unwrap()
}

/// A reader that has seen the ConfigMap.
fn seen(heap: &str, changed: &str, annotations: &Value) -> ContentReader {
    let source = Source { kind: SourceKind::ConfigMap, name: "env".into() };
    let key = "HEAP".to_owned();
    let metadata = metadata(changed, annotations);
    let data = [(key, heap.as_bytes().to_vec())].into();
    let seen = Seen::of(&Object::new(metadata, data));
    ContentReader { known: [(source, (Instant::now(), Some(seen)))].into() }
}

fn update(
    reader: &ContentReader,
    pod: &PodFacts,
    template: Option<PodUpdate>,
) -> Option<PodUpdate> {
    reader.added_to(Ok(template), pod, "opensearch", &Policy::default()).unwrap()
}

fn note(update: &PodUpdate) -> String {
    update.patch.annotations[annotation::CONTENT].wanted.clone().unwrap()
}

const BEFORE: &str = "2026-11-22T09:30:00Z";
const AFTER: &str = "2026-11-22T11:00:00Z";

#[tokio::test] // proves UPDATE-67
async fn it_is_noted_and_a_change_of_it_needs_a_container_and_not_a_pod() {
    let old = seen("1g", BEFORE, &Value::Null);
    let first = update(&old, &pod(None, 0), None).unwrap();
    assert_eq!((first.step, &*first.from, &*first.to), (UpdateStep::Relabel, "logs-1", "logs-1"));
    let noted = note(&first);
    assert!(!noted.contains("1g") && noted.len() < 100, "{noted}");
    let pod_noted = pod(Some(&noted), 0);
    assert_eq!(update(&old, &pod_noted, None), None);
    let new = seen("2g", AFTER, &Value::Null);
    let changed = update(&new, &pod_noted, None).unwrap();
    assert_eq!(
        (changed.step, &*changed.from, &*changed.to),
        (UpdateStep::Container, "logs-1", "logs-1")
    );
    assert_eq!(
        changed.because,
        ["ConfigMap env, key HEAP, in spec.containers[opensearch].env[HEAP]"]
    );
    let change = &changed.patch.annotations[annotation::CONTENT];
    assert_eq!(change.seen.as_deref(), Some(&*noted));
    // The next container, with the note that is written once it is proven.
    assert_eq!(update(&new, &pod(Some(&note(&changed)), 1), None), None);
    // Before that it is not noted what the next container has.
    assert_ne!(note(&changed), noted);
}

#[tokio::test]
async fn it_needs_a_pod_where_the_kubelet_makes_no_other_container() {
    let noted = note(&update(&seen("1g", BEFORE, &Value::Null), &pod(None, 0), None).unwrap());
    let new = seen("2g", AFTER, &Value::Null);
    for (policy, step) in [
        (Some("Always"), UpdateStep::Container),
        (Some("Never"), UpdateStep::Replace),
        (Some("OnFailure"), UpdateStep::Replace),
    ] {
        let pod = of_policy(Some(&noted), 0, policy);
        let policy = Policy { update: [UpdateStep::Replace].into(), ..Policy::default() };
        let found = new.added_to(Ok(None), &pod, "opensearch", &policy).unwrap().unwrap();
        assert_eq!(found.step, step, "{pod:?}");
    }
}

#[tokio::test] // proves UPDATE-67
async fn it_goes_with_an_update_of_the_template() {
    let noted = note(&update(&seen("1g", BEFORE, &Value::Null), &pod(None, 0), None).unwrap());
    let pod = pod(Some(&noted), 0);
    let template = |step| PodUpdate {
        from: "logs-1".into(),
        to: "logs-2".into(),
        step,
        because: vec!["a field".into()],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: stayput_restart::PodPatch::default(),
    };
    let new = seen("2g", AFTER, &Value::Null);
    for (of_template, expected, is_noted) in [
        (UpdateStep::Relabel, UpdateStep::Container, true),
        (UpdateStep::Restart, UpdateStep::Container, true),
        (UpdateStep::Container, UpdateStep::Container, true),
        (UpdateStep::Resize, UpdateStep::Resize, true),
        (UpdateStep::Replace, UpdateStep::Replace, false),
    ] {
        let both = update(&new, &pod, Some(template(of_template))).unwrap();
        assert_eq!((both.step, &*both.to), (expected, "logs-2"), "{of_template:?}");
        assert_eq!(both.because.len(), 2, "{of_template:?}");
        let is_made = of_template != UpdateStep::Replace;
        assert_eq!(both.makes_a_container(), is_made, "{of_template:?}");
        assert_eq!(!both.patch.annotations.is_empty(), is_noted, "{of_template:?}");
    }
    let unknown = Err(stayput_restart::Unknown { message: "revision gone".into() });
    assert_eq!(new.added_to(unknown.clone(), &pod, "opensearch", &Policy::default()), unknown);
}

#[tokio::test] // proves UPDATE-67
async fn ignored_absent_or_changed_too_late_it_is_no_change() {
    let noted = note(&update(&seen("1g", BEFORE, &Value::Null), &pod(None, 0), None).unwrap());
    let ignored = seen("2g", AFTER, &json!({IGNORE: "true"}));
    let update_of = update(&ignored, &pod(Some(&noted), 0), None).unwrap();
    assert_eq!(update_of.step, UpdateStep::Relabel, "only the note follows");
    let counted = seen("2g", AFTER, &Value::Null);
    assert_eq!(update(&counted, &pod(Some(&note(&update_of)), 0), None), None);
    assert_eq!(update(&ContentReader::default(), &pod(Some(&noted), 0), None), None);
    let unknown = update(&counted, &pod(None, 0), None).unwrap();
    assert_eq!(note(&unknown), r#"{"restarts":0,"content":{}}"#);
}

#[test] // proves UPDATE-67
fn a_digest_says_nothing_to_who_does_not_know_the_object() {
    let digests = |uid: &str, key: &str, value: &str| {
        let metadata = ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() };
        let key = key.to_owned();
        let data = [(key.clone(), value.as_bytes().to_vec())].into();
        Seen::of(&Object::new(metadata, data)).digests[&key].clone()
    };
    assert_eq!(digests("a", "key", "hush").len(), NOTED);
    assert_ne!(digests("a", "key", "hush"), digests("b", "key", "hush"));
    assert_ne!(digests("a", "k", "ey\nhush"), digests("a", "k\ney", "hush"));
}

/// External Secrets, a restored backup and a chart that is installed again make the same objects with other uids.
#[tokio::test] // proves UPDATE-69
async fn an_object_that_is_made_again_with_the_same_content_restarts_nothing() {
    let noted = note(&update(&seen("1g", BEFORE, &Value::Null), &pod(None, 0), None).unwrap());
    let made_again = |heap: &str, before: Seen| {
        let metadata =
            ObjectMeta { uid: Some("another".to_owned()), ..metadata(AFTER, &Value::Null) };
        let data = [("HEAP".to_owned(), heap.as_bytes().to_vec())].into();
        let again = Seen::of(&Object::new(metadata, data)).after(Some(before));
        let source = Source { kind: SourceKind::ConfigMap, name: "env".into() };
        ContentReader { known: [(source, (Instant::now(), Some(again)))].into() }
    };
    let before = || {
        let mut reader = seen("1g", BEFORE, &Value::Null);
        let (_, (_, before)) = reader.known.pop_first().unwrap();
        before.unwrap().gone()
    };
    let same = update(&made_again("1g", before()), &pod(Some(&noted), 0), None).unwrap();
    assert_eq!(same.step, UpdateStep::Relabel, "only the note follows");
    let renewed = note(&same);
    assert_ne!(renewed, noted);
    assert_eq!(update(&made_again("1g", before()), &pod(Some(&renewed), 0), None), None);
    let other = update(&made_again("2g", before()), &pod(Some(&noted), 0), None).unwrap();
    assert_eq!(other.step, UpdateStep::Container);
}

/// No step makes another container of it, and the pod is not as it is wanted.
#[tokio::test] // proves UPDATE-67
async fn what_a_container_beside_the_engine_has_read_needs_another_pod() {
    let old = seen("1g", BEFORE, &Value::Null);
    let noted = note(&update(&old, &with_exporter(None, 0), None).unwrap());
    assert!(noted.contains("exporter"), "{noted}");
    assert_eq!(update(&old, &with_exporter(Some(&noted), 0), None), None);
    let new = seen("2g", AFTER, &Value::Null);
    let changed = update(&new, &with_exporter(Some(&noted), 0), None).unwrap();
    assert_eq!(changed.step, UpdateStep::Replace);
    assert_eq!(
        changed.because,
        ["ConfigMap env, key HEAP, in spec.containers[exporter].env[HEAP]"]
    );
    assert_eq!(
        update(&new, &with_exporter(Some(&noted), 1), None).unwrap().step,
        UpdateStep::Relabel
    );
}
