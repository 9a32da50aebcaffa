//! Discovery: which groups, versions and kinds are served. Clients request it first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Catalog, Resource};

impl Catalog {
    /// `/apis`.
    pub(crate) fn groups(&self) -> Value {
        let mut names: BTreeMap<&str, ()> = BTreeMap::new();
        names.extend(self.all().map(|resource| (resource.group.as_str(), ())));
        let groups: Vec<Value> = names
            .into_keys()
            .filter(|name| !name.is_empty())
            .filter_map(|name| self.group(name))
            .collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/GROUP`.
    pub(crate) fn group(&self, group: &str) -> Option<Value> {
        let mut versions: Vec<&str> = self
            .all()
            .filter(|resource| resource.group == group)
            .map(|resource| resource.version.as_str())
            .collect();
        versions.sort_unstable();
        versions.dedup();
        let versions: Vec<Value> = versions
            .into_iter()
            .map(
                |version| json!({"groupVersion": format!("{group}/{version}"), "version": version}),
            )
            .collect();
        let preferred = versions.first()?.clone();
        Some(json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": group,
            "versions": versions,
            "preferredVersion": preferred,
        }))
    }

    /// `/api/v1`, `/apis/GROUP/VERSION`.
    pub(crate) fn resources_of(&self, group: &str, version: &str) -> Option<Value> {
        let mut listed = Vec::new();
        for resource in self.all() {
            if resource.group == group && resource.version == version {
                listed.extend(rows(resource));
            }
        }
        if listed.is_empty() {
            return None;
        }
        let group_version =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Some(json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": listed,
        }))
    }
}

fn rows(resource: &Resource) -> Vec<Value> {
    let mut rows = vec![json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "shortNames": resource.short_names,
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    })];
    if resource.status {
        rows.push(json!({
            "name": format!("{}/status", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["get", "patch", "update"],
        }));
    }
    if resource.storage == "pods" {
        rows.push(json!({
            "name": "pods/resize",
            "singularName": "",
            "namespaced": true,
            "kind": "Pod",
            "verbs": ["get", "patch", "update"],
        }));
    }
    if resource.plural == "serviceaccounts" {
        rows.push(json!({
            "name": "serviceaccounts/token",
            "singularName": "",
            "namespaced": true,
            "group": "authentication.k8s.io",
            "version": "v1",
            "kind": "TokenRequest",
            "verbs": ["create"],
        }));
    }
    rows
}
