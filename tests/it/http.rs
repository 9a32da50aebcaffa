//! Code and written contract (`proto/`) agree.

// The clippy exemption for tests does not apply to helpers of an integration test.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stayput_api::{Code, DrainRequest, Problem, StartRequest, Status, StopRequest};
use stayput_manager::http::{Access, ROUTES};

const SAMPLES: [(&str, &str); 4] = [
    ("running", include_str!("../../proto/samples/status-running.json")),
    ("stopped", include_str!("../../proto/samples/status-stopped.json")),
    ("failed", include_str!("../../proto/samples/status-failed.json")),
    ("minimal", include_str!("../../proto/samples/status-minimal.json")),
];

fn openapi() -> Value {
    serde_saphyr::from_str(include_str!("../../proto/openapi.yaml")).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../proto/status.schema.json")).unwrap()
}

fn keys(yaml: &Value) -> BTreeSet<String> {
    yaml.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

fn words(yaml: &Value) -> BTreeSet<&str> {
    yaml.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

#[test] // proves ACCESS-23
fn every_route_is_written_down_and_nothing_else() {
    let openapi = openapi();
    let paths = &openapi["paths"];
    let written: BTreeSet<(String, String)> = keys(paths)
        .into_iter()
        .flat_map(|path| {
            let methods = keys(&paths[path.as_str()]);
            methods.into_iter().map(move |method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let served: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (route.path.to_owned(), route.method.to_owned())).collect();
    assert_eq!(written, served);
}

#[test]
fn every_route_says_what_it_answers_to_strangers() {
    let openapi = openapi();
    for route in ROUTES {
        let operation = &openapi["paths"][route.path][route.method.to_lowercase().as_str()];
        let answers = keys(&operation["responses"]);
        assert!(answers.contains("405"), "{}", route.path);
        let is_open = route.access == Access::Open;
        assert_eq!(answers.contains("401"), !is_open, "{}", route.path);
        assert_eq!(operation["security"].as_array().is_some_and(Vec::is_empty), is_open);
    }
}

#[test]
fn every_code_is_written_down_with_an_answer_that_carries_it() {
    let openapi = openapi();
    let schemas = &openapi["components"]["schemas"];
    let written = words(&schemas["Problem"]["properties"]["code"]["enum"]);
    assert_eq!(written, Code::ALL.iter().map(|code| code.as_str()).collect());
    let answers = keys(&openapi["components"]["responses"]);
    for code in Code::ALL {
        // The contract cannot list this code, because it belongs to routes that do not exist.
        if code != Code::NotFound {
            let status = code.http_status();
            assert!(answers.contains(&format!("Problem{status}")), "{code:?}");
        }
    }
}

#[test]
fn requests_have_the_fields_that_are_written_down() {
    let openapi = openapi();
    let schemas = &openapi["components"]["schemas"];
    for (name, sample) in [
        ("StopRequest", include_str!("../../proto/samples/stop-request.json")),
        ("StartRequest", include_str!("../../proto/samples/start-request.json")),
        ("DrainRequest", include_str!("../../proto/samples/drain-request.json")),
    ] {
        let sample: Value = serde_json::from_str(sample).unwrap();
        let fields = sample.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys(&schemas[name]["properties"]), fields, "{name}");
        assert_eq!(schemas[name]["additionalProperties"].as_bool(), Some(false));
    }
}

#[track_caller]
fn survives<T: DeserializeOwned + Serialize>(sample: &str) {
    let value: Value = serde_json::from_str(sample).unwrap();
    let read: T = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), value);
}

#[test]
fn samples_are_read_and_written_without_loss() {
    for (_, sample) in SAMPLES {
        survives::<Status>(sample);
    }
    survives::<StopRequest>(include_str!("../../proto/samples/stop-request.json"));
    survives::<StartRequest>(include_str!("../../proto/samples/start-request.json"));
    survives::<DrainRequest>(include_str!("../../proto/samples/drain-request.json"));
    for sample in [
        include_str!("../../proto/samples/problem-checksum-mismatch.json"),
        include_str!("../../proto/samples/problem-unauthenticated.json"),
    ] {
        survives::<Problem>(sample);
        let problem: Problem = serde_json::from_str(sample).unwrap();
        let fresh = Problem::new(problem.code, "");
        assert_eq!((problem.title, problem.status), (fresh.title, fresh.status));
    }
}

#[test] // proves ACCESS-23
fn the_status_is_what_the_schema_says() {
    for (name, sample) in SAMPLES {
        let sample = serde_json::from_str(sample).unwrap();
        assert_eq!(faults_of(&sample), Vec::<String>::new(), "{name}");
    }
}

/// What of a status is not as the schema says.
pub(crate) fn faults_of(status: &Value) -> Vec<String> {
    let (schema, mut faults) = (schema(), Vec::new());
    check(&schema, &schema, status, "the status", &mut faults);
    faults
}

#[test]
fn the_checker_finds_faults() {
    let schema = schema();
    let sample: Value = serde_json::from_str(SAMPLES[0].1).unwrap();
    let faults = |change: &dyn Fn(&mut Value)| {
        let (mut sample, mut faults) = (sample.clone(), Vec::new());
        change(&mut sample);
        check(&schema, &schema, &sample, "", &mut faults);
        faults.len()
    };
    assert_eq!(faults(&|_| ()), 0);
    assert_eq!(faults(&|status| status["state"] = "asleep".into()), 1);
    assert_eq!(faults(&|status| status["starts"] = "4".into()), 1);
    assert_eq!(faults(&|status| status["new"] = 4.into()), 1);
    assert_eq!(faults(&|status| status["last_exit"]["stragglers"][0]["pid"] = 0.into()), 1);
    assert_eq!(faults(&|status| drop(status.as_object_mut().unwrap().remove("ready"))), 1);
}

/// A validator for the part of JSON Schema that our schemas use. It is stricter in one point: a
/// field that is not in the schema is an error, because the samples are our own.
fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).unwrap();
        return check(root, target, value, at, faults);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(|own| own == kind),
        own => own == kind,
    };
    let listed = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    let large_enough = match (schema["minimum"].as_u64(), value.as_u64()) {
        (Some(least), Some(number)) => number >= least,
        _ => true,
    };
    if !(allowed && listed && large_enough) {
        faults.push(format!("{at}: {value} does not match the schema"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}/{index}"), faults);
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            faults.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(property) => check(root, property, field, &format!("{at}/{name}"), faults),
            None => faults.push(format!("{at}/{name} is not in the schema")),
        }
    }
}
