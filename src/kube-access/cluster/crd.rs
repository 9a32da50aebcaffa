//! The custom resource definition, as it is installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use kube::CustomResourceExt;
use serde_json::Value;

use super::SearchCluster;
use stayput_declare::MAX_STATEFUL_SET;

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
