//! The part of OpenAPI that `kubectl` reads before it writes: it says that the server reports
//! unknown fields, so that `kubectl` does not check them itself. And the schemas of CRDs.

use serde_json::{Map, Value, json};

use super::{Catalog, Resource};

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
