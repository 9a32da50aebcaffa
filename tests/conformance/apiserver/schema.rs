//! Custom resources against their schema.

use kube::Client;
use serde_json::{Value, json};

use super::world::{GROUP, World, gauge, text};

/// The kind of these cases: its schema has every feature of our own schema, in a few fields.
pub(super) fn definition() -> Value {
    let scale = json!({
        "type": "object",
        "required": ["unit"],
        "properties": {
            "unit": {"type": "string", "enum": ["bar", "psi"]},
            "least": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100, "default": 1},
            "note": {"type": "string", "nullable": true, "maxLength": 8, "minLength": 2},
        },
    });
    let spec = json!({
        "type": "object",
        "required": ["scale"],
        "properties": {
            "scale": scale,
            "paused": {"type": "boolean", "default": false},
            "tags": {
                "type": "array", "items": {"type": "string"}, "maxItems": 3,
                "x-kubernetes-list-type": "set",
            },
            "readings": {
                "type": "array", "maxItems": 9,
                "items": {
                    "type": "object", "required": ["at"],
                    "properties": {"at": {"type": "string"}, "value": {"type": "number"}},
                },
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["at"],
            },
            "options": {
                "type": "object", "default": {},
                "properties": {"depth": {"type": "integer", "default": 3}},
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "period": {"type": "string", "pattern": "^[0-9]+[smh]$"},
            "width": {"x-kubernetes-int-or-string": true},
        },
    });
    let status = json!({
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "observedGeneration": {"type": "integer", "format": "int64"},
            "groups": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "since": {"type": "string"},
                        "nodes": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                },
            },
        },
    });
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gauges.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Gauge", "plural": "gauges", "singular": "gauge", "shortNames": ["gg"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}

pub async fn defaults_are_filled_in_and_unknown_fields_dropped(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["spec"]["unknown"] = json!(1);
    object["spec"]["scale"]["unknown"] = json!({"deep": 1});
    object["spec"]["labels"] = json!({"free": "text"});
    object["spec"]["anything"] = json!({"at": {"all": [1]}});
    object["spec"]["width"] = json!("10%");
    object["spec"]["paused"] = Value::Null;
    object["spec"]["scale"]["note"] = Value::Null;
    object["extra"] = json!(true);
    let made = world.post("gauges", &object).await.good();
    let expected = json!({
        "scale": {"unit": "bar", "least": 1, "note": null},
        "paused": false,
        "options": {"depth": 3},
        "labels": {"free": "text"},
        "anything": {"at": {"all": [1]}},
        "width": "10%",
    });
    assert_eq!(made["spec"], expected);
    assert_eq!(made["extra"], Value::Null);
    let patch = json!({"spec": {"paused": null, "unknown": 2, "scale": {"least": null}}});
    let patched = world.merge("gauges", "a", &patch).await.good();
    assert_eq!(patched["spec"], expected);
    assert_eq!(patched["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

pub async fn another_kind_is_refused(client: Client) {
    let world = World::with_gauges(client).await;
    let mut other = gauge("a");
    other["kind"] = json!("Thing");
    let refused = world.post("gauges", &other).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "kind");
    other.as_object_mut().unwrap().remove("kind");
    world.post("gauges", &other).await.refused(400, "BadRequest");
    let mut odd = gauge("a");
    odd["metadata"]["labels"] = json!({"a": 1});
    world.post("gauges", &odd).await.refused(400, "BadRequest");
    let put = world.send(http::Method::PUT, &world.path("gauges", ""), &gauge("a")).await;
    put.refused(400, "BadRequest");
    let none = world.get(&world.path("gauges", "a/nonsense")).await.refused(404, "NotFound");
    assert_eq!(none["details"]["name"], "a");
}

pub async fn wrong_values_are_refused_by_field(client: Client) {
    let world = World::with_gauges(client).await;
    world.post("gauges", &gauge("a")).await.good();
    for (patch, field, reason) in [
        (json!({"scale": {"unit": "inch"}}), "spec.scale.unit", "FieldValueNotSupported"),
        (json!({"scale": {"unit": null}}), "spec.scale.unit", "FieldValueRequired"),
        (json!({"scale": {"least": -1}}), "spec.scale.least", "FieldValueInvalid"),
        (json!({"scale": {"least": 101}}), "spec.scale.least", "FieldValueInvalid"),
        (json!({"scale": {"least": "1"}}), "spec.scale.least", "FieldValueTypeInvalid"),
        (json!({"scale": {"note": "123456789"}}), "spec.scale.note", "FieldValueTooLong"),
        (json!({"scale": {"note": "1"}}), "spec.scale.note", "FieldValueInvalid"),
        (json!({"tags": ["1", "2", "3", "4"]}), "spec.tags", "FieldValueTooMany"),
        (json!({"tags": ["1", 2]}), "spec.tags[1]", "FieldValueTypeInvalid"),
        (json!({"tags": ["1", "2", "1"]}), "spec.tags[2]", "FieldValueDuplicate"),
        (
            json!({"readings": [{"at": "x"}, {"at": "x", "value": 1.5}]}),
            "spec.readings[1]",
            "FieldValueDuplicate",
        ),
        (json!({"labels": {"a": 1}}), "spec.labels.a", "FieldValueTypeInvalid"),
        (json!({"period": "soon"}), "spec.period", "FieldValueInvalid"),
        (json!({"width": true}), "spec.width", "FieldValueTypeInvalid"),
    ] {
        let refused = world.merge("gauges", "a", &json!({"spec": patch})).await;
        let refused = refused.refused(422, "Invalid");
        let cause = &refused["details"]["causes"][0];
        assert_eq!(
            (text(&cause["field"]).as_str(), text(&cause["reason"]).as_str()),
            (field, reason)
        );
        assert!(
            text(&refused["message"]).starts_with(&format!("Gauge.{GROUP} \"a\" is invalid: "))
        );
        assert_eq!(refused["details"]["kind"], "Gauge");
        assert_eq!(refused["details"]["group"], GROUP);
    }
    let mut nothing = gauge("b");
    nothing.as_object_mut().unwrap().remove("spec");
    let refused = world.post("gauges", &nothing).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec");
    let phase = json!({"status": {"phase": 1}});
    let refused = world.merge("gauges", "a/status", &phase).await.refused(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "status.phase");
}

pub async fn unknown_fields_are_refused_when_asked_for(client: Client) {
    let world = World::with_gauges(client).await;
    let mut object = gauge("a");
    object["spec"]["unknown"] = json!(1);
    let path = world.path("gauges", "?fieldValidation=Strict");
    let refused = world.send(http::Method::POST, &path, &object).await.refused(400, "BadRequest");
    assert!(text(&refused["message"]).contains("unknown field \"spec.unknown\""), "{refused}");
    world.send(http::Method::POST, &path, &gauge("a")).await.good();
    let mut object = super::world::pod("a");
    object["spec"]["containers"][0]["colour"] = json!("red");
    let path = world.path("pods", "?fieldValidation=Strict");
    let refused = world.send(http::Method::POST, &path, &object).await.refused(400, "BadRequest");
    let message = text(&refused["message"]);
    assert!(message.contains("unknown field \"spec.containers[0].colour\""), "{message}");
    world.send(http::Method::POST, &path, &super::world::pod("a")).await.good();
}
