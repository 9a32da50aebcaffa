//! The operators' objects that StatefulSets belong to.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use stayput_restart::Known;

use crate::apiserver::objects::Asked;
use crate::doctor::read::known;

/// The objects, by kind and name.
pub(crate) async fn read(
    ask: &Asked<'_>,
    sets: &BTreeMap<String, Known<Option<StatefulSet>>>,
) -> BTreeMap<(String, String), Known<Option<DynamicObject>>> {
    let mut found = BTreeMap::new();
    let sets = sets.values().filter_map(|set| set.as_ref().ok()?.as_ref());
    for owner in sets.flat_map(ResourceExt::owner_references) {
        let is_ours = owner.api_version.starts_with("stayput.dev/");
        let key = (owner.kind.clone(), owner.name.clone());
        if owner.controller != Some(true) || is_ours || found.contains_key(&key) {
            continue;
        }
        let (group, version) =
            owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, &owner.kind),
            &plural(&owner.kind),
        );
        found.insert(
            key,
            known(ask.find_dynamic(&resource, "objects of the operator", &owner.name).await),
        );
    }
    found
}

/// Plural name of a kind in the operators' definitions.
fn plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    if name == "elasticsearch" { name + "es" } else { name + "s" }
}
