//! Variables of the engine that come to the same container.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{template, update};
use crate::{Change, UpdateStep, environment};

type Edit = fn(&mut Value);

/// The example, with the option of the manager.
fn given(edit: impl FnOnce(&mut Value)) -> Value {
    let mut all = template();
    let option = json!({"name": "STAYPUT_ENVIRONMENT", "value": "/stayput-pod/environment"});
    let env = json!([{"name": "CLUSTER", "value": "logs"}, {"name": "OLD", "value": "1"}, option]);
    all["spec"]["containers"][0]["env"] = env;
    edit(&mut all["spec"]["containers"][0]);
    all
}

fn add(container: &mut Value, variable: Value) {
    container["env"].as_array_mut().expect("a list").push(variable);
}

#[test] // proves UPDATE-110
fn a_variable_with_a_value_of_its_own_asks_for_a_restart() {
    let rows: [(&str, Edit); 4] = [
        ("changed", |engine| engine["env"][0]["value"] = json!("hunter2")),
        ("added", |engine| add(engine, json!({"name": "NEW", "value": "hunter2"}))),
        ("added without a value", |engine| add(engine, json!({"name": "NEW"}))),
        ("removed", |engine| drop(engine["env"].as_array_mut().expect("a list").remove(1))),
    ];
    for (what, edit) in rows {
        let found = update(&given(edit), &given(|_| {}));
        assert_eq!(found.step, UpdateStep::Restart, "{what}: {found:?}");
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }
}

#[test] // proves UPDATE-110
fn what_the_manager_cannot_give_asks_for_another_pod() {
    let set = |name: &'static str, value: &str| {
        let variable = json!({"name": name, "value": value});
        move |engine: &mut Value| add(engine, variable.clone())
    };
    // A change of NEW, beside what both templates have.
    let step = |name: &'static str, both: Edit| {
        let of = |value: &str| {
            given(|engine| {
                set(name, value)(engine);
                both(engine);
            })
        };
        update(&of("2"), &of("1")).step
    };
    assert_eq!(step("NEW", |_| {}), UpdateStep::Restart);
    let rows: [(&str, &'static str, Edit); 9] = [
        ("no option", "NEW", |engine| {
            drop(engine["env"].as_array_mut().expect("a list").remove(2))
        }),
        ("of the manager", "STAYPUT_PORT", |_| {}),
        ("of ECK's hook", "PRE_STOP_ADDITIONAL_WAIT_SECONDS", |_| {}),
        ("in a command", "NEW", |engine| engine["command"] = json!(["run", "--at=$(NEW)"])),
        ("in an argument", "NEW", |engine| engine["args"] = json!(["$(NEW)"])),
        ("in another", "NEW", |engine| add(engine, json!({"name": "A", "value": "$(NEW)0"}))),
        ("in a path", "NEW", |engine| engine["volumeMounts"][0]["subPathExpr"] = json!("$(NEW)")),
        ("in a probe", "NEW", |engine| {
            engine["readinessProbe"]["exec"]["command"] = json!(["sh", "-c", "curl $NEW"]);
        }),
        ("in a hook", "NEW", |engine| {
            engine["lifecycle"]["preStop"]["exec"]["command"] = json!(["sh", "-c", "echo ${NEW}"]);
        }),
    ];
    for (what, name, both) in rows {
        assert_eq!(step(name, both), UpdateStep::Replace, "{what}");
    }
    let rows: [(&str, Edit, Edit); 6] = [
        (
            "from elsewhere",
            |_| {},
            |engine| add(engine, json!({"name": "N", "valueFrom": {"fieldRef": {}}})),
        ),
        (
            "no longer from elsewhere",
            |engine| add(engine, json!({"name": "N", "valueFrom": {"fieldRef": {}}})),
            |engine| add(engine, json!({"name": "N", "value": "1"})),
        ),
        (
            "made of another",
            |_| {},
            |engine| {
                add(engine, json!({"name": "N", "value": "$(CLUSTER)-0"}));
            },
        ),
        (
            "bared",
            |engine| {
                engine["envFrom"] = json!([{"configMapRef": {"name": "env"}}]);
                add(engine, json!({"name": "N", "value": "1"}));
            },
            |engine| engine["envFrom"] = json!([{"configMapRef": {"name": "env"}}]),
        ),
        (
            "another order",
            |engine| add(engine, json!({"name": "N", "value": "$(CLUSTER)"})),
            |engine| {
                add(engine, json!({"name": "N", "value": "$(CLUSTER)"}));
                engine["env"].as_array_mut().expect("a list").reverse();
                add(engine, json!({"name": "M", "value": "1"}));
            },
        ),
        ("the option", |_| {}, |engine| engine["env"][2]["value"] = json!("/elsewhere")),
    ];
    for (what, before, after) in rows {
        assert_eq!(update(&given(after), &given(before)).step, UpdateStep::Replace, "{what}");
    }
    let of_another = |value: &str| {
        let mut all = given(|_| {});
        all["spec"]["containers"][1]["env"] = json!([{"name": "NEW", "value": value}]);
        all
    };
    assert_eq!(update(&of_another("2"), &of_another("1")).step, UpdateStep::Replace);
    let mut annotated = given(|_| {});
    annotated["metadata"]["annotations"]["stayput.dev/environment"] = json!("{}");
    assert_eq!(update(&annotated, &given(|_| {})).step, UpdateStep::Replace);
}

fn wanted(
    templates: [&Value; 2],
    own: &[(&str, &str)],
    seen: Option<&str>,
) -> Option<Option<String>> {
    let own: BTreeMap<String, String> =
        own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let seen = seen.map(str::to_owned);
    let change = environment(templates, "opensearch", &own, seen.as_ref());
    change.map(|change| {
        assert_eq!(change.seen, seen);
        change.wanted
    })
}

#[test] // proves UPDATE-111
fn the_annotation_has_what_differs_from_the_pod_whatever_was_there() {
    let own = [("CLUSTER", "logs"), ("OLD", "1")];
    let first = given(|_| {});
    let second = given(|engine| {
        engine["env"][0]["value"] = json!("metrics");
        add(engine, json!({"name": "NEW", "value": "\"a\""}));
        engine["env"].as_array_mut().expect("a list").remove(1);
    });
    let of_second = r#"{"CLUSTER":"metrics","NEW":"\"a\"","OLD":null}"#;
    assert_eq!(wanted([&first, &second], &own, None), Some(Some(of_second.to_owned())));
    // It is there already, after an update that ended in the middle.
    assert_eq!(wanted([&first, &second], &own, Some(of_second)), None);
    let third = given(|engine| {
        engine["env"][0]["value"] = json!("logs");
        add(engine, json!({"name": "NEW", "value": "b"}));
    });
    let of_third = r#"{"NEW":"b"}"#;
    assert_eq!(wanted([&second, &third], &own, Some(of_second)), Some(Some(of_third.to_owned())));
    // What other fields ask for leaves it as it is.
    assert_eq!(wanted([&third, &third], &own, Some(of_third)), None);
    // Put back.
    assert_eq!(wanted([&third, &first], &own, Some(of_third)), Some(None));
    assert_eq!(wanted([&first, &first], &own, None), None);
    // Somebody has written anything there.
    assert_eq!(wanted([&first, &first], &own, Some("hello")), Some(None));
    // Its manager gives it none.
    assert_eq!(wanted([&template(), &second], &own, None), None);
}

#[test] // proves UPDATE-110
fn the_highest_step_of_all_fields_counts() {
    let old = given(|_| {});
    let new = given(|engine| {
        engine["env"][0]["value"] = json!("metrics");
        engine["image"] = json!("other");
    });
    assert_eq!(update(&new, &old).step, UpdateStep::Container);
    assert_eq!(
        environment(
            [&old, &new],
            "opensearch",
            &BTreeMap::from([("CLUSTER".into(), "logs".into())]),
            None
        ),
        Some(Change { seen: None, wanted: Some(r#"{"CLUSTER":"metrics"}"#.to_owned()) })
    );
}
