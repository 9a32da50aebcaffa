//! Updates of pods by their owners' templates, with objects as the apiserver returns them.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stayput_restart::{Change, Known, PodUpdate, Time, UpdateStep};
use tokio::time::Instant;

use super::Owners;
use crate::apiserver::ApiError;
use crate::pods::{PodFacts, Reading};
use stayput_kube_access::stateful_set::{Revision, Set};

fn merge(into: &mut Value, change: &Value) {
    match change {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| merge(&mut into[name], value));
        }
        value => *into = value.clone(),
    }
}

/// An OnDelete set of three pods, as its controller has seen it.
fn set(change: Value) -> Set {
    let mut set = json!({
        "metadata": {"name": "logs", "namespace": "search", "uid": "u", "generation": 2},
        "spec": {
            "replicas": 3, "serviceName": "logs", "selector": {},
            "updateStrategy": {"type": "OnDelete"},
            "template": {"spec": {"containers": [{"name": "search", "image": "search:2"}]}},
        },
        "status": {"replicas": 3, "observedGeneration": 2, "updateRevision": "logs-new"},
    });
    merge(&mut set, &change);
    Set::of(&serde_json::from_value::<StatefulSet>(set).expect("a StatefulSet"))
}

fn template(change: Value) -> Value {
    let mut template = json!({
        "$patch": "replace",
        "metadata": {"labels": {"app": "logs", "tier": "hot"}},
        "spec": {"containers": [{
            "name": "search", "image": "search:1", "ports": [{"containerPort": 9199}],
            "resources": {"limits": {"memory": "1Gi"}},
        }]},
    });
    merge(&mut template, &change);
    template
}

fn pod(name: &str, revision: &str) -> PodFacts {
    pod_with(name, revision, json!({}))
}

fn pod_with(name: &str, revision: &str, annotations: Value) -> PodFacts {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "search", "uid": name, "resourceVersion": "7",
            "annotations": annotations,
            "labels": {"app": "logs", "tier": "hot", "controller-revision-hash": revision},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs", "uid": "u",
                "controller": true,
            }],
        },
        // As the apiserver has made it of the template.
        "spec": {
            "containers": [{
                "name": "search", "image": "search:1", "ports": [{"containerPort": 9199}],
                "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}},
            }],
            "initContainers": [{
                "name": "once", "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}},
            }],
        },
    }))
    .expect("a pod");
    PodFacts::of(&pod, &Reading { updates: true, ..Reading::default() }).expect("its facts")
}

/// A revision, as it was read.
fn revision(name: &str, template: Value) -> Result<Option<Revision>, ApiError> {
    let revision: ControllerRevision = serde_json::from_value(json!({
        "metadata": {"name": name}, "revision": 1, "data": {"spec": {"template": template}},
    }))
    .expect("a revision");
    Ok(Some(Revision::of(&revision)))
}

/// The update of `logs-1`, of revision logs-old.
fn update(set: Set, old: Option<Value>, new: Value) -> Known<Option<PodUpdate>> {
    let mut owners = Owners::default();
    owners.known.insert("logs".into(), (Instant::now(), Ok(Some(set))));
    let key = |name: &str| ("u".to_owned(), name.to_owned());
    let old = old.map_or(Ok(None), |old| revision("logs-old", old));
    owners.templates.put(key("logs-old"), old);
    owners.templates.put(key("logs-new"), revision("logs-new", new));
    owners.update(&pod("logs-1", "logs-old"), 9199, &["/usr/share/opensearch/data".to_owned()])
}

fn known(new: Value) -> PodUpdate {
    let update = update(set(json!({})), Some(template(json!({}))), template(new));
    update.expect("it is known").expect("it is needed")
}

/// As `inject` makes it: with the size of the engine.
#[test] // proves UPDATE-55
fn what_has_run_and_ended_keeps_its_size() {
    let of = |memory: &str| {
        let resources = json!({"limits": {"memory": memory}});
        template(json!({"spec": {
            "containers": [{"name": "search", "image": "search:1", "resources": resources}],
            "initContainers": [{"name": "once", "resources": resources}],
        }}))
    };
    let update = update(set(json!({})), Some(of("1Gi")), of("2Gi"));
    let update = update.expect("it is known").expect("it is needed");
    assert_eq!(update.step, UpdateStep::Resize);
    assert_eq!(update.patch.resources.keys().collect::<Vec<_>>(), ["search"]);
}

#[test] // proves RESTART-77, UPDATE-1
fn the_step_its_fields_and_what_a_living_pod_takes_follow_from_both_revisions() {
    let image = |image: &str| {
        json!({"spec": {"containers": [{
            "name": "search", "image": image, "ports": [{"containerPort": 9199}],
            "resources": {"limits": {"memory": "1Gi"}},
        }]}})
    };
    let container = known(image("search:2"));
    assert_eq!((container.from.as_str(), container.to.as_str()), ("logs-old", "logs-new"));
    assert_eq!(container.step, UpdateStep::Container);
    assert_eq!(container.because, ["spec.containers[search].image: search:1 -> search:2"]);
    let change = |seen: &str, wanted: &str| Change {
        seen: Some(seen.to_owned()),
        wanted: Some(wanted.to_owned()),
    };
    assert_eq!(container.patch.images["search"], change("search:1", "search:2"));
    assert!(container.patch.labels.is_empty() && container.patch.resources.is_empty());

    // An update that ended in the middle has left it: whether its container runs is looked at.
    let old = Some(template(image("search:0")));
    let left = update(set(json!({})), old, template(image("search:1"))).expect("it is known");
    assert_eq!(left.expect("it is needed").patch.images["search"], change("search:1", "search:1"));

    let relabel = known(json!({"metadata": {"labels": {"tier": "warm"}}}));
    assert_eq!(relabel.step, UpdateStep::Relabel);
    assert_eq!(relabel.patch.labels["tier"], change("hot", "warm"));

    let resize = known(json!({"spec": {"containers": [{
        "name": "search", "image": "search:1", "ports": [{"containerPort": 9199}],
        "resources": {"limits": {"memory": "2Gi"}},
    }]}}));
    assert_eq!((resize.step, resize.makes_a_container()), (UpdateStep::Resize, false));
    let both = known(json!({"spec": {"containers": [{
        "name": "search", "image": "search:2", "ports": [{"containerPort": 9199}],
        "resources": {"limits": {"memory": "2Gi"}},
    }]}}));
    assert_eq!((both.step, both.makes_a_container()), (UpdateStep::Resize, true));
    // The request that the apiserver had made of the limit follows it.
    assert_eq!(
        resize.patch.resources["search"],
        change(
            r#"{"limits":{"memory":"1Gi"},"requests":{"memory":"1Gi"}}"#,
            r#"{"limits":{"memory":"2Gi"},"requests":{"memory":"2Gi"}}"#
        )
    );

    let replace = known(json!({"spec": {"nodeSelector": {"disk": "fast"}}}));
    assert_eq!(replace.step, UpdateStep::Replace);
    assert!(!replace.data_elsewhere);
    let mounted = |part: &str| {
        let path = "/usr/share/opensearch/data";
        let mount = json!({"name": "data", "mountPath": path, "subPath": part});
        json!({"spec": {"containers": [{"name": "search", "volumeMounts": [mount]}]}})
    };
    let moved = update(set(json!({})), Some(template(mounted(""))), template(mounted("os")));
    let moved = moved.expect("it is known").expect("it is needed");
    assert_eq!((moved.step, moved.data_elsewhere), (UpdateStep::Replace, true));
    // Nothing adds a toleration to a living pod.
    let tolerations = known(json!({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}));
    assert_eq!(tolerations.step, UpdateStep::Replace);

    // Two revisions that mean the same: the pod gets the label.
    let same = known(json!({}));
    assert_eq!((same.step, same.because.len()), (UpdateStep::Relabel, 0));
}

#[test] // proves UPDATE-111
fn a_variable_of_the_engine_comes_by_an_annotation() {
    let of = |value: Option<&str>| {
        let variable = value.map(|value| json!({"name": "TEAM", "value": value}));
        let option = json!({"name": "STAYPUT_ENVIRONMENT", "value": "/stayput-pod/environment"});
        let env: Vec<Value> = [option].into_iter().chain(variable).collect();
        template(json!({"spec": {"containers": [{"name": "search", "env": env}]}}))
    };
    let update = |given: Option<&str>, from, to| {
        let mut owners = Owners::default();
        owners.known.insert("logs".into(), (Instant::now(), Ok(Some(set(json!({}))))));
        let key = |name: &str| ("u".to_owned(), name.to_owned());
        owners.templates.put(key("logs-old"), revision("logs-old", of(from)));
        owners.templates.put(key("logs-new"), revision("logs-new", of(to)));
        let annotations = given.map(|given| json!({"stayput.dev/environment": given}));
        let pod = pod_with("logs-1", "logs-old", annotations.unwrap_or_default());
        owners.update(&pod, 9199, &[]).expect("it is known").expect("it is needed")
    };
    let change = |seen: Option<&str>, wanted: Option<&str>| {
        Some(Change { seen: seen.map(str::to_owned), wanted: wanted.map(str::to_owned) })
    };
    let first = update(None, None, Some("search"));
    assert_eq!(first.step, UpdateStep::Restart);
    assert_eq!(first.because, ["spec.containers[search].env[TEAM]"]);
    let search = r#"{"TEAM":"search"}"#;
    assert_eq!(first.patch.variables, change(None, Some(search)));
    // The pod still has none, whatever it was told since.
    let second = update(Some(search), Some("search"), Some("logs"));
    assert_eq!(second.patch.variables, change(Some(search), Some(r#"{"TEAM":"logs"}"#)));
    let back = update(Some(search), Some("search"), None);
    assert_eq!(
        (back.step, back.patch.variables),
        (UpdateStep::Restart, change(Some(search), None))
    );
}

#[test] // proves UPDATE-2
fn what_cannot_be_compared_or_is_not_ours_says_why_and_what_to_do() {
    let old = || Some(template(json!({})));
    let why = |set: Set, old: Option<Value>| {
        update(set, old, template(json!({}))).expect_err("it is unknown").message
    };
    for (set, old, parts) in [
        (set(json!({})), None, vec!["logs-old", "no longer kept", "revisionHistoryLimit"]),
        (set(json!({"metadata": {"generation": 3}})), old(), vec!["has not seen it yet"]),
        (set(json!({"metadata": {"uid": "another"}})), old(), vec!["is not there"]),
        (
            set(json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}})),
            old(),
            vec![
                "replaces its pods by itself",
                "kubectl patch statefulset logs --namespace search",
            ],
        ),
        (
            set(json!({"metadata": {"ownerReferences": [{
                "apiVersion": "databases.example/v1", "kind": "Database",
                "name": "logs", "uid": "e", "controller": true,
            }]}})),
            old(),
            vec!["belongs to Database logs", "spec.update.mode"],
        ),
    ] {
        let why = why(set, old);
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
}

#[test]
fn a_pod_of_the_wanted_revision_or_that_its_set_removes_lacks_nothing() {
    let mut owners = Owners::default();
    owners.known.insert("logs".into(), (Instant::now(), Ok(Some(set(json!({}))))));
    assert_eq!(owners.update(&pod("logs-1", "logs-new"), 9199, &[]), Ok(None));
    assert_eq!(owners.update(&pod("logs-7", "logs-old"), 9199, &[]), Ok(None), "it leaves");
}

/// ECK's set, of which the pod `logs-1` was made from `actual`, is labelled `label`, and has the tier of that.
fn ahead(label: &str, actual: &str, tier: &str) -> (Owners, PodFacts) {
    let eck = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch",
        "name": "logs", "uid": "e", "controller": true,
    }]}});
    let mut owners = Owners::default();
    owners.known.insert("logs".into(), (Instant::now(), Ok(Some(set(eck)))));
    let image = |tier: &str, image: &str| {
        template(json!({
            "metadata": {"labels": {"tier": tier}},
            "spec": {"containers": [{"name": "search", "image": image}]},
        }))
    };
    let key = |name: &str| ("u".to_owned(), name.to_owned());
    owners.templates.put(key("logs-old"), revision("logs-old", image("hot", "search:1")));
    owners.templates.put(key("logs-mid"), revision("logs-mid", image("mid", "search:1")));
    owners.templates.put(key("logs-new"), revision("logs-new", image("new", "search:2")));
    let mut pod = pod_with("logs-1", label, json!({"stayput.dev/actual-revision": actual}));
    pod.labels.insert("tier".into(), tier.into());
    (owners, pod)
}

#[test] // proves UPDATE-105
fn a_label_that_is_ahead_is_never_taken_for_the_pod() {
    let change = |seen: &str, wanted: &str| Change {
        seen: Some(seen.to_owned()),
        wanted: Some(wanted.to_owned()),
    };
    for (label, tier, labels) in [("logs-new", "new", None), ("logs-mid", "mid", Some("mid"))] {
        let (mut owners, pod) = ahead(label, "logs-old", tier);
        let update = owners.update(&pod, 9199, &[]).expect("it is known").expect("it is needed");
        assert_eq!((update.from.as_str(), update.to.as_str()), ("logs-old", "logs-new"));
        assert_eq!(update.step, UpdateStep::Container);
        assert_eq!(update.patch.images["search"], change("search:1", "search:2"));
        let wanted = labels.map(|seen| change(seen, "new"));
        assert_eq!(update.patch.labels.get("tier"), wanted.as_ref(), "from what it has");
        let pods = [Arc::new(pod)];
        for now in [Time(7), Time(9)] {
            owners.see_labels(&pods, now);
        }
        let back = owners.ahead(&pods[0]).expect("it is ahead");
        assert_eq!((back.revision.as_str(), back.since), (label, Time(7)));
        assert_eq!(back.back.expect("it is known").labels["tier"], change(tier, "hot"));
    }
}

#[test] // proves UPDATE-105, UPDATE-107
fn a_template_that_is_put_back_takes_the_label_back() {
    let (mut owners, pod) = ahead("logs-mid", "logs-new", "mid");
    let update = owners.update(&pod, 9199, &[]).expect("it is known").expect("it is needed");
    assert_eq!((update.from.as_str(), update.to.as_str()), ("logs-new", "logs-new"));
    assert_eq!(update.step, UpdateStep::Relabel);
    assert_eq!(update.because, ["its label names logs-mid"]);
    assert_eq!(update.patch.labels["tier"].wanted.as_deref(), Some("new"));
    assert!(update.patch.images.is_empty());
}

#[test] // proves RESTART-127
fn an_operator_that_rolls_a_set_is_seen() {
    let pods = |revision| [Arc::new(pod("logs-0", "logs-new")), Arc::new(pod("logs-1", revision))];
    let rolled = |set: Set, revision| {
        let mut owners = Owners::default();
        owners.put("logs", Ok(Some(set)));
        owners.replaced_by_operators(&pods(revision)).into_iter().collect::<Vec<_>>()
    };
    let eck = || {
        set(json!({"metadata": {"ownerReferences": [{
            "apiVersion": "elasticsearch.k8s.elastic.co/v1", "kind": "Elasticsearch",
            "name": "logs", "uid": "e", "controller": true,
        }]}}))
    };
    assert_eq!(rolled(eck(), "logs-old"), ["logs"]);
    assert!(rolled(eck(), "logs-new").is_empty(), "all pods are as they are to be");
    assert!(rolled(set(json!({})), "logs-old").is_empty(), "no operator replaces them");
}
