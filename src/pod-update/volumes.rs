//! The Secrets and ConfigMaps in the volumes of a pod template.

use serde_json::Value;

use crate::source::{Source, SourceKind};

/// Keys and the paths at which they are mounted; `None` for all keys by their own names.
pub(crate) type Items = Option<Vec<(String, String)>>;

/// A Secret or ConfigMap in a volume.
pub(crate) struct Part {
    pub(crate) source: Source,
    pub(crate) items: Items,
    /// True if absent objects and keys are left out, and keep no pod from being started.
    pub(crate) optional: bool,
}

/// Secrets and ConfigMaps of a volume; in a projected volume a later one covers an earlier.
pub(crate) fn parts(volume: &Value) -> Vec<Part> {
    let mut found = Vec::new();
    found.extend(part(&volume["secret"], "secretName", SourceKind::Secret));
    found.extend(part(&volume["configMap"], "name", SourceKind::ConfigMap));
    for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
        found.extend(part(&source["secret"], "name", SourceKind::Secret));
        found.extend(part(&source["configMap"], "name", SourceKind::ConfigMap));
    }
    found
}

/// The volumes with a file of the pod's own labels, annotations and the like (`downwardAPI`) for which this is true.
pub(crate) fn of_the_pod<'a>(
    template: &'a Value,
    has: impl Fn(&Value) -> bool,
) -> impl Iterator<Item = &'a Value> {
    let items = |shown: &'a Value| shown["items"].as_array().into_iter().flatten();
    let volumes = template["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter(move |volume| {
        let projected = volume["projected"]["sources"].as_array().into_iter().flatten();
        let of_sources = projected.flat_map(|source| items(&source["downwardAPI"]));
        items(&volume["downwardAPI"]).chain(of_sources).any(&has)
    })
}

/// Kind of a volume, such as `emptyDir`.
pub(crate) fn kind(volume: &Value) -> &str {
    let fields = volume.as_object().into_iter().flatten();
    let mut kinds = fields.filter(|(field, value)| *field != "name" && !value.is_null());
    kinds.next().map_or("emptyDir", |(field, _)| field)
}

/// The volume with this name.
pub(crate) fn volume<'a>(template: &'a Value, name: &Value) -> Option<&'a Value> {
    let mut volumes = template["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.find(|volume| &volume["name"] == name)
}

fn part(object: &Value, name: &str, kind: SourceKind) -> Option<Part> {
    let source = Source { kind, name: object[name].as_str()?.to_owned() };
    let optional = object["optional"].as_bool().unwrap_or(false);
    Some(Part { source, items: items(object), optional })
}

fn items(object: &Value) -> Items {
    let list = object["items"].as_array().filter(|list| !list.is_empty())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(list.iter().map(|item| (text(&item["key"]), text(&item["path"]))).collect())
}
