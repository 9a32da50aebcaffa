//! The custom resource definition, as it is installed, and the fields and values that only one of two definitions
//! has, ours or that in the cluster, because they are of two versions. Kubernetes silently drops a field that its
//! definition does not have, and refuses an unknown value.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};
use stayput_declare::MAX_STATEFUL_SET;

use crate::cluster::spec::SearchCluster;

/// The definition cannot be written as YAML.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// Cannot encode the definition as JSON.
    #[error("cannot encode the definition: {0}")]
    Json(#[from] serde_json::Error),
    /// Cannot encode the definition as YAML.
    #[error("cannot encode the definition: {0}")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// The definition of `searchclusters.stayput.dev`.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = SearchCluster::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) =
            version.schema.as_mut().and_then(|all| all.open_api_v3_schema.as_mut())
        {
            adapt(schema);
            schema.x_kubernetes_validations = Some(name_rules());
        }
    }
    crd
}

/// Rules for the names of a declared cluster's objects. Only a rule of the whole object can read its own
/// name.
fn name_rules() -> Vec<ValidationRule> {
    let rule = |rule: String, message: String| ValidationRule {
        rule: format!("!has(self.spec.nodeSets) || {rule}"),
        message: Some(message),
        ..ValidationRule::default()
    };
    let longest = MAX_STATEFUL_SET;
    vec![
        rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')".to_owned(),
            "metadata.name cannot be the name of a Service: with spec.nodeSets a name has small \
             letters, digits and -, and begins with a letter"
                .to_owned(),
        ),
        rule(
            format!(
                "self.spec.nodeSets.all(set, size(self.metadata.name) + 1 + size(set.name) <= \
                 {longest})"
            ),
            format!(
                "metadata.name, - and the name of each of spec.nodeSets are the name of a \
                 StatefulSet, which may have {longest} characters: shorten one of them"
            ),
        ),
    ]
}

/// The definition as YAML, ready for `kubectl apply`.
///
/// # Errors
/// If it cannot be written as YAML.
pub fn crd_yaml() -> Result<String, CrdError> {
    let mut crd = serde_json::to_value(crd())?;
    whole_numbers(&mut crd);
    Ok(serde_saphyr::to_string(&crd)?)
}

/// Kubernetes' own types hold limits as floating point: `65535.0` is not what people write.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0);
            if let Some(whole) = whole.and_then(|whole| format!("{whole}").parse::<i64>().ok()) {
                *number = whole.into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Adapts a schema to the apiserver: unsigned formats become signed, since Kubernetes warns about them.
/// Nullable fields become plain ones: no value of ours is null, and the apiserver removes a null from a field
/// that is not nullable.
fn adapt(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.format = match schema.format.take().as_deref() {
        Some("uint64" | "uint") => Some("int64".into()),
        Some("uint8" | "uint16" | "uint32") => Some("int32".into()),
        other => other.map(str::to_owned),
    };
    for property in schema.properties.iter_mut().flat_map(|all| all.values_mut()) {
        adapt(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => adapt(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(adapt),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        adapt(values);
    }
}

/// Fields that only one definition has; shown as the first field, and the number of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsOfOneSide {
    first: String,
    more: usize,
}

impl fmt::Display for FieldsOfOneSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.first)?;
        if self.more > 0 { write!(formatter, " and {} more", self.more) } else { Ok(()) }
    }
}

/// The fields of our SearchCluster, and the values of its enums (`spec.field=value`), that these schemas, one
/// of each version, do not have.
pub fn missing_fields<'a>(theirs: impl IntoIterator<Item = &'a Value>) -> Option<FieldsOfOneSide> {
    only_in(&our_fields(), &fields(theirs))
}

/// The fields and values of these schemas that this program does not know: the schemas are of a newer
/// version.
pub fn unknown_fields<'a>(theirs: impl IntoIterator<Item = &'a Value>) -> Option<FieldsOfOneSide> {
    only_in(&fields(theirs), &our_fields())
}

fn our_fields() -> BTreeSet<String> {
    let ours = crd();
    let ours = ours.spec.versions.iter().filter_map(|version| version.schema.as_ref());
    let ours: Vec<Value> = ours.map(|schema| json!(schema.open_api_v3_schema)).collect();
    fields(&ours)
}

/// The fields of `these` that are not in `others`.
fn only_in(these: &BTreeSet<String>, others: &BTreeSet<String>) -> Option<FieldsOfOneSide> {
    // A missing field is named once, without the fields and values inside of it.
    let above = |field: &'_ String| -> Option<String> {
        let (above, _) = field.split_once('=').or_else(|| field.rsplit_once('.'))?;
        Some(above.to_owned())
    };
    let is_top = |field: &&String| above(field).is_none_or(|above| others.contains(&above));
    let mut only = these.difference(others).filter(is_top);
    let first = only.next()?.clone();
    Some(FieldsOfOneSide { first, more: only.count() })
}

/// The paths of all fields, and the values of those with an enum.
fn fields<'a>(schemas: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for schema in schemas {
        collect(schema, "", &mut all);
    }
    all
}

fn collect(schema: &Value, at: &str, all: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        collect(field, &path, all);
        all.insert(path);
    }
    for value in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        all.insert(format!("{at}={value}"));
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|inner| schema.get(inner)) {
        collect(inner, at, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!(crd().spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema)
    }

    #[test] // proves DOCTOR-5
    fn what_is_missing_is_named_and_counted() {
        assert_eq!(missing_fields([&schema()]), None);
        let mut newer = schema();
        newer["properties"]["spec"]["properties"]["newer"] = json!({"type": "string"});
        assert_eq!(missing_fields([&newer]), None);
        assert_eq!(unknown_fields([&schema()]), None);
        let unknown = unknown_fields([&newer]).expect("one that is not ours");
        assert_eq!(unknown.to_string(), "spec.newer");
        let mut older = schema();
        let properties = &mut older["properties"];
        properties["status"]["properties"].as_object_mut().unwrap().remove("ledger");
        let missing = missing_fields([&older]).expect("one with fields of its own");
        assert_eq!(missing.to_string(), "status.ledger");
        let windows = &mut older["properties"]["spec"]["properties"]["restart"]["properties"];
        windows["windows"]["items"]["properties"].as_object_mut().unwrap().remove("timeZone");
        let missing = missing_fields([&older]).expect("two");
        assert_eq!(missing.to_string(), "spec.restart.windows.timeZone and 1 more");
        let mut of_less = schema();
        let history = &mut of_less["properties"]["status"]["properties"]["history"]["items"];
        let outcomes = history["properties"]["outcome"]["enum"].as_array_mut().expect("values");
        assert_eq!(outcomes.remove(0), "done", "{history}");
        let missing = missing_fields([&of_less]).expect("a value");
        assert_eq!(missing.to_string(), "status.history.outcome=done");
        let missing = missing_fields([]).expect("everything");
        assert_eq!(missing.to_string(), "spec and 1 more");
    }
}
