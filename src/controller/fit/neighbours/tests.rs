//! Rules between pods, as tables: the pod that comes, one that is there, and what is found.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object of Kubernetes")
}

fn pod(name: &str, labels: Value, spec: Value) -> Pod {
    read(json!({
        "metadata": {"name": name, "uid": name, "namespace": "search", "labels": labels},
        "spec": spec,
    }))
}

fn node() -> Node {
    let labels = json!({HOSTNAME: "n", "zone": "a"});
    read(json!({"metadata": {"name": "n", "labels": labels}}))
}

fn rule(kind: &str, term: Value) -> Value {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    json!({"containers": [], "affinity": {kind: {required: [term]}}})
}

fn apart(term: Value) -> Value {
    rule("podAntiAffinity", term)
}

fn beside(term: Value) -> Value {
    rule("podAffinity", term)
}

fn of_app(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

/// What is found for a pod with the label `app: search`, of another template than the one of the pod there.
fn check_of(spec: &Value, before: &Value, other: &Pod) -> ConflictCheck {
    let template = |spec: &Value| -> PodTemplateSpec {
        read(json!({"metadata": {"labels": {"app": "search"}}, "spec": spec}))
    };
    let itself = pod("self", json!({"app": "search"}), before.clone());
    let coming = Coming::of(template(spec), Some(template(before)), &itself, "2");
    check(&node(), &[itself, other.clone()], &coming)
}

#[test] // proves UPDATE-9
fn a_pod_that_is_there_conflicts_by_name() {
    let plain = json!({"containers": []});
    let mesh = || pod("mesh", json!({"app": "mesh"}), plain.clone());
    let with = |term: &str, value: Value| {
        let mut one = of_app("mesh", HOSTNAME);
        one[term] = value;
        apart(one)
    };
    let rows: [(&str, Value, Pod, &str); 13] = [
        ("nothing", plain.clone(), mesh(), ""),
        (
            "an anti-affinity of its own",
            apart(of_app("mesh", HOSTNAME)),
            mesh(),
            "it has an anti-affinity to the pod search/mesh, which is there",
        ),
        ("to others", apart(of_app("other", HOSTNAME)), mesh(), ""),
        ("by a label that the node lacks", apart(of_app("mesh", "rack")), mesh(), ""),
        ("in another namespace", with("namespaces", json!(["other"])), mesh(), ""),
        (
            "in every namespace",
            with("namespaceSelector", json!({})),
            mesh(),
            "it has an anti-affinity to the pod search/mesh",
        ),
        (
            "in a namespace by name",
            with("namespaceSelector", json!({"matchLabels": {NAMESPACE: "other"}})),
            mesh(),
            "",
        ),
        ("of another value", with("mismatchLabelKeys", json!(["app"])), mesh(), "anti-affinity"),
        ("of its own value", with("matchLabelKeys", json!(["zone"])), mesh(), "anti-affinity"),
        (
            "the other one's",
            plain.clone(),
            pod("mesh", json!({}), apart(of_app("search", HOSTNAME))),
            "the pod search/mesh, which is there, has an anti-affinity to it",
        ),
        (
            "by a label of the revision",
            plain.clone(),
            pod(
                "mesh",
                json!({}),
                apart(json!({
                    "labelSelector": {"matchLabels": {"controller-revision-hash": "2"}},
                    "topologyKey": HOSTNAME,
                })),
            ),
            "has an anti-affinity to it",
        ),
        ("an affinity that is met", beside(of_app("mesh", HOSTNAME)), mesh(), ""),
        (
            "an affinity that is not",
            beside(of_app("other", HOSTNAME)),
            mesh(),
            "its pod affinity by kubernetes.io/hostname asks for a pod that is not there",
        ),
    ];
    for (name, spec, other, expected) in rows {
        let found = check_of(&spec, &plain, &other);
        let is_as_expected = match expected {
            "" => found.conflicts.is_empty(),
            text => found.conflicts.iter().any(|one| one.contains(text)),
        };
        assert!(is_as_expected && found.unknown.is_empty(), "{name}: {found:?}");
    }
}

#[test] // proves UPDATE-9
fn a_port_of_the_node_can_be_had_once() {
    let port = |port: Value| json!({"containers": [{"name": "a", "ports": [port]}]});
    let on_node = json!({"hostNetwork": true, "containers": [{"name": "a", "ports": [{"containerPort": 9200}]}]});
    let host = |number: i32| json!({"containerPort": 80, "hostPort": number});
    let rows = [
        (port(host(9200)), port(host(9200)), true),
        (port(host(9200)), on_node.clone(), true),
        (on_node, port(host(9200)), true),
        (port(host(9200)), port(host(9300)), false),
        (port(json!({"containerPort": 9200})), port(host(9200)), false),
        (
            port(json!({"containerPort": 80, "hostPort": 53, "protocol": "UDP"})),
            port(host(53)),
            false,
        ),
        (
            port(json!({"containerPort": 80, "hostPort": 53, "hostIP": "10.0.0.1"})),
            port(json!({"containerPort": 80, "hostPort": 53, "hostIP": "10.0.0.2"})),
            false,
        ),
        (
            port(json!({"containerPort": 80, "hostPort": 53, "hostIP": "10.0.0.1"})),
            port(host(53)),
            true,
        ),
    ];
    for (spec, other, conflicts) in rows {
        let found =
            check_of(&spec, &json!({"containers": []}), &pod("mesh", json!({}), other.clone()));
        assert_eq!(!found.conflicts.is_empty(), conflicts, "{spec} {other}: {found:?}");
        assert!(found.conflicts.iter().all(|one| one.contains("the pod search/mesh")), "{found:?}");
    }
}

#[test] // proves UPDATE-9
fn what_follows_from_pods_elsewhere_is_not_known_if_the_template_changes_it() {
    let plain = json!({"containers": []});
    let mesh = pod("mesh", json!({"app": "mesh"}), plain.clone());
    let spread = |when: &str, skew: i32| {
        let constraint =
            json!({"maxSkew": skew, "topologyKey": HOSTNAME, "whenUnsatisfiable": when});
        json!({"containers": [], "topologySpreadConstraints": [constraint]})
    };
    let far = apart(of_app("other", "zone"));
    let rows: [(&str, &Value, &Value, &str); 9] = [
        ("an anti-affinity by zone", &far, &plain, "anti-affinity by zone has changed"),
        ("as before", &far, &far, ""),
        ("an affinity by zone", &beside(of_app("other", "zone")), &plain, "may be on other nodes"),
        ("as before", &beside(of_app("other", "zone")), &beside(of_app("other", "zone")), ""),
        ("met here", &beside(of_app("mesh", "zone")), &plain, ""),
        (
            "the first of several",
            &beside(of_app("search", HOSTNAME)),
            &plain,
            "which may be on other nodes",
        ),
        ("a constraint", &spread("DoNotSchedule", 1), &plain, "topologySpreadConstraints"),
        ("as before", &spread("DoNotSchedule", 1), &spread("DoNotSchedule", 1), ""),
        ("a wish", &spread("ScheduleAnyway", 2), &spread("ScheduleAnyway", 1), ""),
    ];
    for (name, spec, before, expected) in rows {
        let found = check_of(spec, before, &mesh);
        let is_as_expected = match expected {
            "" => found.unknown.is_empty(),
            text => found.unknown.iter().any(|one| one.contains(text)),
        };
        assert!(is_as_expected && found.conflicts.is_empty(), "{name}: {found:?}");
    }
    let by_label = json!({
        "labelSelector": {}, "topologyKey": HOSTNAME,
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    });
    let found = check_of(&apart(by_label), &plain, &mesh);
    assert!(found.unknown[0].contains("namespace labels"), "{found:?}");
}
