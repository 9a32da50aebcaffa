//! Discovery: which groups, versions and kinds are served. Clients request it first.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

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

// The part of OpenAPI that `kubectl` reads before it writes: it says that the server reports
// unknown fields, so that `kubectl` does not check them itself. And the schemas of CRDs.

impl Catalog {
    /// `/openapi/v3`.
    pub(crate) fn openapi_index(&self) -> Value {
        let mut paths = Map::new();
        for resource in self.all() {
            let path = prefix(resource);
            let url = format!("/openapi/v3/{path}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
        json!({"paths": paths})
    }

    /// `/openapi/v3/PREFIX`.
    pub(crate) fn openapi_of(&self, asked: &str) -> Option<Value> {
        let (mut paths, mut schemas) = (Map::new(), Map::new());
        for resource in self.all().filter(|resource| prefix(resource) == asked) {
            let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
            let kind = json!({
                "group": resource.group,
                "version": resource.version,
                "kind": resource.kind,
            });
            let parameter = json!({"name": "fieldValidation", "in": "query"});
            let patch = json!({
                "parameters": [parameter],
                "x-kubernetes-group-version-kind": kind,
                "responses": {},
            });
            if let Some(schema) = resource.schema() {
                let mut schema = schema.clone();
                schema["x-kubernetes-group-version-kind"] = json!([kind]);
                let group: Vec<&str> = resource.group.rsplit('.').collect();
                let name = format!("{}.{}.{}", group.join("."), resource.version, resource.kind);
                schemas.insert(name, schema);
            }
            paths.insert(
                format!("/{asked}{scope}/{}/{{name}}", resource.plural),
                json!({"patch": patch}),
            );
        }
        let info = json!({"title": "Kubernetes", "version": super::super::VERSION});
        let components = json!({"schemas": schemas});
        (!paths.is_empty()).then(
            || json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": components}),
        )
    }
}

fn prefix(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}
