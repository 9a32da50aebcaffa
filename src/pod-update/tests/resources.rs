//! What a change of a template makes of a living container.

use serde_json::{Value, json};

use crate::{in_effect, resized};

#[test] // proves UPDATE-1
fn only_what_the_template_changes_is_changed() {
    let limits = |memory: &str| json!({"limits": {"cpu": "1", "memory": memory}});
    // As the apiserver has made it: the requests are the limits.
    let live = json!({
        "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"},
    });
    let after = json!({
        "limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"},
    });
    assert_eq!(resized(&live, &limits("1Gi"), &limits("2Gi")), after);
    // Once more, as after a crash.
    assert_eq!(resized(&after, &limits("1Gi"), &limits("2Gi")), after);
    // What somebody else has changed stays.
    let larger = json!({"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "3"}});
    let changed = resized(&larger, &limits("1Gi"), &limits("2Gi"));
    assert_eq!(changed["limits"], json!({"cpu": "3", "memory": "2Gi"}));
    assert_eq!(changed["requests"], json!({"cpu": "3", "memory": "2Gi"}));
    // Another way to write an amount is no change.
    assert_eq!(resized(&live, &limits("1Gi"), &limits("1024Mi")), live);
    let none = resized(&Value::Null, &json!({}), &json!({"requests": {"cpu": "1"}}));
    assert_eq!(none, json!({"requests": {"cpu": "1"}}));
}

#[test]
fn it_is_in_effect_once_the_kubelet_reports_every_amount_of_the_spec() {
    let spec = json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "1Gi"}});
    for (reported, expected) in [
        (
            json!({"limits": {"memory": "1024Mi"}, "requests": {"cpu": "0.25", "memory": "1Gi"}}),
            true,
        ),
        (json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "0.5", "memory": "1Gi"}}), false),
        (json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "250m"}}), false),
        (Value::Null, false),
    ] {
        assert_eq!(in_effect(&spec, &reported), expected, "{reported}");
    }
    assert!(in_effect(&json!({}), &Value::Null), "nothing is given");
}
