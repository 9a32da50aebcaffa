//! The custom resource definition, as it is installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;

use super::SearchCluster;

/// The definition of `searchclusters.stayput.dev`.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = SearchCluster::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) =
            version.schema.as_mut().and_then(|all| all.open_api_v3_schema.as_mut())
        {
            settle(schema);
        }
    }
    crd
}

/// The definition as YAML, ready for `kubectl apply`.
///
/// # Errors
/// A sentence, should there be something in it that YAML cannot express.
pub fn crd_yaml() -> Result<String, String> {
    let mut crd = serde_json::to_value(crd()).map_err(|error| error.to_string())?;
    whole_numbers(&mut crd);
    serde_saphyr::to_string(&crd).map_err(|error| error.to_string())
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

/// Kubernetes knows no unsigned formats and warns about each. And a null is no value of ours: what
/// is not nullable, the apiserver takes away before anybody sees it.
fn settle(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.format = match schema.format.take().as_deref() {
        Some("uint64" | "uint") => Some("int64".into()),
        Some("uint8" | "uint16" | "uint32") => Some("int32".into()),
        other => other.map(str::to_owned),
    };
    for property in schema.properties.iter_mut().flat_map(|all| all.values_mut()) {
        settle(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => settle(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(settle),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        settle(values);
    }
}
