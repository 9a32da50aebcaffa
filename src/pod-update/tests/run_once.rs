//! Init containers that have run before the engine's first start.

use serde_json::{Value, json};

use super::{template, update};
use crate::UpdateStep;

fn sized(mut template: Value, engine: &str, init: &str) -> Value {
    for (list, memory) in [("containers", engine), ("initContainers", init)] {
        template["spec"][list][0]["resources"] =
            json!({"limits": {"memory": memory}, "requests": {"memory": memory}});
    }
    template
}

/// As `inject` makes it: the init container has the size of the engine.
#[test] // proves UPDATE-55
fn their_size_does_not_keep_a_pod_from_getting_another_one() {
    let of = |engine, init| sized(template(), engine, init);
    for (actual, wanted, step) in [
        (of("2Gi", "2Gi"), of("4Gi", "4Gi"), UpdateStep::Resize),
        (of("2Gi", "2Gi"), of("2Gi", "1Gi"), UpdateStep::Relabel),
        (of("2Gi", "1Gi"), of("2Gi", "1024Mi"), UpdateStep::None),
        (of("2Gi", "1Gi"), of("1Gi", "512Mi"), UpdateStep::Resize),
        // The pod would take 4 GiB of its Kubernetes node all the same.
        (of("4Gi", "4Gi"), of("2Gi", "2Gi"), UpdateStep::Replace),
    ] {
        let found = update(&wanted, &actual);
        assert_eq!(found.step, step, "{found:#?}");
    }
}

/// The quality of service of a pod is that of all its containers, and of those that it keeps.
#[test] // proves UPDATE-55
fn a_size_that_would_change_the_quality_of_service_needs_another_pod() {
    let both =
        json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 1, "memory": "1Gi"}});
    let some = json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}});
    let of = |engine: &Value, init: &Value| {
        let mut template = template();
        template["spec"]["initContainers"][1]["resources"] = both.clone();
        template["spec"]["containers"][1]["resources"] = both.clone();
        template["spec"]["containers"][0]["resources"] = engine.clone();
        template["spec"]["initContainers"][0]["resources"] = init.clone();
        template
    };
    let step = |actual: Value, wanted: Value| update(&wanted, &actual).step;
    assert_eq!(step(of(&both, &both), of(&both, &some)), UpdateStep::Replace);
    // Both templates are Burstable, and the pod in between would be Guaranteed.
    assert_eq!(step(of(&some, &both), of(&both, &some)), UpdateStep::Replace);
}

#[test] // proves UPDATE-56
fn what_makes_the_archive_follows_the_engine() {
    let mut actual = sized(template(), "2Gi", "1Gi");
    actual["spec"]["initContainers"][0]["name"] = json!("stayput-warm");
    type Change = fn(&mut Value);
    let rows: [(&str, Change, UpdateStep); 6] = [
        ("the image", |init| init["image"] = json!("other"), UpdateStep::Restart),
        (
            "a variable",
            |init| init["env"] = json!([{"name": "A", "value": "b"}]),
            UpdateStep::Relabel,
        ),
        ("the command", |init| init["command"] = json!(["other"]), UpdateStep::Relabel),
        (
            "the size",
            |init| init["resources"]["limits"]["memory"] = json!("2Gi"),
            UpdateStep::Relabel,
        ),
        ("another name", |init| init["name"] = json!("other"), UpdateStep::Replace),
        // Then it is no init container that ends.
        ("its policy", |init| init["restartPolicy"] = json!("Always"), UpdateStep::Replace),
    ];
    for (name, change, step) in rows {
        let mut wanted = actual.clone();
        change(&mut wanted["spec"]["initContainers"][0]);
        let found = update(&wanted, &actual);
        assert_eq!(found.step, step, "{name}: {found:#?}");
    }
    let mut wanted = actual.clone();
    wanted["spec"]["containers"][0]["image"] = json!("other");
    wanted["spec"]["initContainers"][0]["image"] = json!("other");
    assert_eq!(update(&wanted, &actual).step, UpdateStep::Container);
}

/// They may have written a heap into a file by it.
#[test] // proves UPDATE-55
fn an_amount_that_one_has_read_needs_another_pod() {
    let reference = |of: &str| json!({"resource": "limits.memory", "containerName": of});
    let variable =
        |of: &str| json!([{"name": "A", "valueFrom": {"resourceFieldRef": reference(of)}}]);
    let file = |of: &str| json!([{"name": "shown", "downwardAPI": {"items": [{"path": "a", "resourceFieldRef": reference(of)}]}}]);
    for (of, reader, step) in [
        ("opensearch", 0, UpdateStep::Replace),
        ("exporter", 0, UpdateStep::Resize),
        // It runs as long as the pod, and is no part of the engine.
        ("opensearch", 1, UpdateStep::Resize),
    ] {
        let mut with_variable = template();
        with_variable["spec"]["initContainers"][reader]["env"] = variable(of);
        let mut with_file = template();
        with_file["spec"]["volumes"] = file(of);
        let mount = json!([{"name": "shown", "mountPath": "/shown"}]);
        with_file["spec"]["initContainers"][reader]["volumeMounts"] = mount;
        for actual in [with_variable, with_file] {
            let mut wanted = actual.clone();
            wanted["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("4Gi");
            let found = update(&wanted, &actual);
            assert_eq!(found.step, step, "{of}, {reader}: {found:#?}");
        }
    }
}
