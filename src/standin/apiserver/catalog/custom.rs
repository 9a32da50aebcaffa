//! The kinds that a `CustomResourceDefinition` declares.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Nature, Resource};

/// One kind for every version that is served.
pub(super) fn resources(definition: &Value) -> Vec<Resource> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&names["kind"]);
    let (group, plural) = (text(&spec["group"]), text(&names["plural"]));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == json!(true));
    served
        .map(|version| Resource {
            version: text(&version["name"]),
            singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned),
            list_kind: names["listKind"].as_str().map_or(format!("{kind}List"), str::to_owned),
            kind: kind.clone(),
            short_names: names["shortNames"].as_array().into_iter().flatten().map(text).collect(),
            namespaced: spec["scope"] == json!("Namespaced"),
            status: version["subresources"]["status"].is_object(),
            storage: format!("{plural}.{group}"),
            nature: Nature::Custom(Arc::new(version["schema"]["openAPIV3Schema"].clone())),
            group: group.clone(),
            plural: plural.clone(),
        })
        .collect()
}
