//! A pod whose init container reads a variable from the ConfigMap, and its engine's container another
//! one from `other`.

use super::*;

fn pod(noted: Option<&str>) -> PodFacts {
    let variable = |object: &str| {
        json!([{
            "name": "HEAP",
            "valueFrom": {"configMapKeyRef": {"name": object, "key": "HEAP"}},
        }])
    };
    let object = json!({
        "metadata": {
            "name": "logs-0", "namespace": "n", "uid": "u", "resourceVersion": "1",
            "creationTimestamp": "2026-11-22T09:59:50Z",
            "annotations": noted.map(|note| json!({annotation::CONTENT: note})),
            "labels": {"controller-revision-hash": "logs-1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "s",
                "controller": true,
            }],
        },
        "spec": {
            "initContainers": [
                {"name": "keystore", "env": variable("env")},
                {"name": "proxy", "restartPolicy": "Always", "env": variable("proxy")},
            ],
            "containers": [{"name": "opensearch", "env": variable("other")}],
        },
        "status": {
            "initContainerStatuses": [{
                "name": "keystore", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                "state": {"terminated": {"exitCode": 0, "startedAt": "2026-11-22T09:59:55Z"}},
            }],
            "containerStatuses": [{
                "name": "opensearch", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-11-22T10:00:00Z"}},
            }],
        },
    });
    let pod: Pod = serde_json::from_value(object).unwrap();
    PodFacts::of(&pod, &Reading { updates: true, ..Reading::default() }).unwrap()
}

/// A change of the template that needs a restart.
fn restart() -> PodUpdate {
    PodUpdate {
        from: "logs-1".into(),
        to: "logs-2".into(),
        step: UpdateStep::Restart,
        because: vec!["a field".into()],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: stayput_restart::PodPatch::default(),
    }
}

/// A reader that has seen both ConfigMaps.
fn both(init: &str, container: &str) -> ContentReader {
    let changed = |value: &str| if value == "1g" { BEFORE } else { AFTER };
    let mut reader = seen(init, changed(init), &Value::Null);
    let other = seen(container, changed(container), &Value::Null);
    for (source, seen) in other.known {
        reader.known.insert(Source { name: "other".into(), ..source }, seen);
    }
    reader
}

fn policy(steps: &[UpdateStep]) -> Policy {
    Policy { update: steps.iter().copied().collect(), ..Policy::default() }
}

fn update(reader: &ContentReader, pod: &PodFacts, policy: &Policy) -> Option<PodUpdate> {
    reader.added_to(Ok(None), pod, "opensearch", policy).unwrap()
}

const OF_INIT: &str = "ConfigMap env, key HEAP, in spec.initContainers[keystore].env[HEAP]";
const OF_CONTAINER: &str = "ConfigMap other, key HEAP, in spec.containers[opensearch].env[HEAP]";

#[tokio::test] // proves UPDATE-67
async fn a_change_of_it_needs_another_pod_and_what_a_new_container_reads_goes_along() {
    let all = policy(&[UpdateStep::Relabel, UpdateStep::Container, UpdateStep::Replace]);
    let first = update(&both("1g", "1g"), &pod(None), &all).unwrap();
    assert_eq!(first.step, UpdateStep::Relabel);
    let noted = note(&first);
    assert!(noted.contains(r#""init":{"started":"#), "{noted}");
    let pod = pod(Some(&noted));
    assert_eq!(update(&both("1g", "1g"), &pod, &all), None);
    let changed = update(&both("2g", "2g"), &pod, &all).unwrap();
    assert_eq!(
        (changed.step, &*changed.from, &*changed.to),
        (UpdateStep::Replace, "logs-1", "logs-1")
    );
    assert_eq!(changed.because, [OF_INIT, OF_CONTAINER]);
    // It is told from a later change.
    let later = update(&both("3g", "2g"), &pod, &all).unwrap();
    assert_ne!(note(&changed), note(&later));
}

#[tokio::test] // proves UPDATE-67
async fn where_no_pod_may_be_replaced_it_is_shown_and_holds_nothing_else_up() {
    let some = policy(&[UpdateStep::Relabel, UpdateStep::Container]);
    let noted = note(&update(&both("1g", "1g"), &pod(None), &some).unwrap());
    let pod_noted = pod(Some(&noted));
    let alone = update(&both("2g", "1g"), &pod_noted, &some).unwrap();
    assert_eq!((alone.step, &alone.because[..]), (UpdateStep::Replace, &[OF_INIT.to_owned()][..]));
    let with_container = update(&both("2g", "2g"), &pod_noted, &some).unwrap();
    assert_eq!(with_container.step, UpdateStep::Container);
    assert_eq!(with_container.because, [OF_CONTAINER, OF_INIT]);
    // The note of the next container still has what the pod was started with.
    let init = |note: &str| note.split(r#""init":"#).nth(1).unwrap().to_owned();
    assert_eq!(init(&note(&with_container)), init(&noted));
    let with_template =
        both("2g", "1g").added_to(Ok(Some(restart())), &pod_noted, "opensearch", &some);
    let with_template = with_template.unwrap().unwrap();
    assert_eq!(with_template.step, UpdateStep::Restart);
    assert_eq!(with_template.because, ["a field", OF_INIT]);
}

/// ECK changes the template for it, too, and replaces the pods if their labels stay as they are.
#[tokio::test] // proves UPDATE-87
async fn where_eck_replaces_pods_it_is_not_put_off_with_a_restart() {
    let some = policy(&[UpdateStep::Relabel, UpdateStep::Restart]);
    let of_eck = |noted: Option<&str>| {
        let mut pod = pod(noted);
        pod.labels.insert("elasticsearch.k8s.elastic.co/cluster-name".into(), "logs".into());
        pod
    };
    let noted = note(&update(&both("1g", "1g"), &of_eck(None), &some).unwrap());
    let pod = of_eck(Some(&noted));
    let found = both("2g", "1g").added_to(Ok(Some(restart())), &pod, "opensearch", &some);
    let found = found.unwrap().unwrap();
    assert_eq!(found.step, UpdateStep::Replace);
    assert_eq!(found.because, [OF_INIT, "a field"]);
}
