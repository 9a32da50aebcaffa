//! The definition is structural, and as strict as the code that reads the objects.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

use crate::cluster::{crd, crd_yaml};

fn schema() -> JSONSchemaProps {
    let version = crd().spec.versions.remove(0);
    version.schema.and_then(|schema| schema.open_api_v3_schema).unwrap()
}

/// Every schema in the tree with its path, as JSON.
fn all() -> Vec<(String, Value)> {
    fn walk(path: String, schema: Value, found: &mut Vec<(String, Value)>) {
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            walk(format!("{path}.{name}"), below.clone(), found);
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                walk(format!("{path}[]"), schema[key].clone(), found);
            }
        }
        found.push((path, schema));
    }
    let mut found = Vec::new();
    walk(String::new(), serde_json::to_value(schema()).unwrap(), &mut found);
    assert!(found.len() > 100, "{} schemas are too few to be all", found.len());
    found
}

/// What the engine, or a StatefulSet, takes, and the ledger, which is no API.
const OPEN: [&str; 4] = [
    ".spec.nodeSets[].config",
    ".spec.nodeSets[].podTemplate",
    ".spec.nodeSets[].volumeClaimTemplates[]",
    ".status.ledger",
];

/// The apiserver refuses a definition that breaks these rules, and drops what a schema does not
/// name.
#[test]
fn the_schema_is_structural_and_nothing_is_left_open() {
    for (path, schema) in all() {
        // A number or a text: Kubernetes wants no other type beside it.
        let typed = schema["type"].is_string() != (schema["x-kubernetes-int-or-string"] == true);
        assert!(typed, "{path} has no type, or two");
        for banned in ["anyOf", "oneOf", "allOf", "not", "$ref", "nullable", "uniqueItems"] {
            assert!(schema.get(banned).is_none(), "{path} has {banned}");
        }
        let open = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
        assert_eq!(open, OPEN.contains(&path.as_str()), "{path}: open, or not");
        let both = schema["properties"].is_object() && schema["additionalProperties"].is_object();
        assert!(!both, "{path} has properties and additionalProperties");
        if let Some(format) = schema["format"].as_str() {
            assert!(["int32", "int64"].contains(&format), "{path}: {format} is unknown to it");
        }
    }
}

/// A number that the schema lets pass and the reader does not would hide every SearchCluster of
/// the list it is in.
#[test]
fn numbers_in_the_spec_are_bounded_on_both_sides() {
    for (path, schema) in all() {
        let either = schema["x-kubernetes-int-or-string"] == true;
        if path.starts_with(".spec") && (schema["type"] == "integer" || either) {
            let rule = schema["x-kubernetes-validations"][0]["rule"].as_str().unwrap_or_default();
            let least = schema["minimum"].is_number() || rule.contains("self >= 1");
            assert!(least, "{path} has no minimum");
            assert!(schema["maximum"].is_number(), "{path} has no maximum");
        }
    }
}

/// The cost of a rule is bounded only where the length of what it reads is.
#[test]
fn texts_and_lists_in_the_spec_are_bounded() {
    for (path, schema) in all() {
        if !path.starts_with(".spec") || path.contains(".selector") {
            continue;
        }
        let either = schema["x-kubernetes-int-or-string"] == true;
        if schema["additionalProperties"].is_object() {
            assert!(schema["maxProperties"].is_number(), "{path} has no maxProperties");
        }
        if (schema["type"] == "string" || either) && schema.get("enum").is_none() {
            assert!(schema["maxLength"].is_number(), "{path} has no maxLength");
        }
        if schema["type"] == "array" {
            assert!(schema["maxItems"].is_number(), "{path} has no maxItems");
        }
    }
}

#[test]
fn every_field_of_the_spec_is_described() {
    for (path, schema) in all() {
        if path.starts_with(".spec") && !path.ends_with("[]") && !path.contains(".selector.") {
            assert!(schema["description"].is_string(), "{path} is not described");
        }
    }
}

#[test]
fn the_columns_show_fields_that_exist() {
    let paths: Vec<String> = all().into_iter().map(|(path, _)| path).collect();
    let columns = crd().spec.versions.remove(0).additional_printer_columns.unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(
        names,
        ["Phase", "Restart", "Blocked", "Pods", "Ready", "Pending", "Updates", "Age", "Message"]
    );
    for column in &columns {
        let known = paths.contains(&column.json_path) || column.name == "Age";
        assert!(known, "{} shows {}", column.name, column.json_path);
    }
}

/// `UPDATE_DEPLOY=1 cargo test -p stayput-kube-access cluster` writes it anew.
#[test]
fn the_installed_definition_is_the_one_of_this_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/base/crd.yaml");
    let yaml = crd_yaml().unwrap();
    if std::env::var_os("UPDATE_DEPLOY").is_some() {
        std::fs::write(&path, &yaml).unwrap();
    }
    let installed = std::fs::read_to_string(&path).unwrap();
    assert!(
        installed == yaml,
        "deploy/base/crd.yaml is out of date: UPDATE_DEPLOY=1 cargo test -p stayput-kube-access cluster"
    );
}
