//! Creates objects, and records the results.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stayput_kube_access::apiserver::Objects;
use stayput_kube_access::certificates::{is_ours, precondition};
use stayput_kube_access::cluster::SearchCluster;

use crate::apiserver::ApiError;
use crate::init::{InitError, InitObject, InitResult};
use crate::session::Session;

/// A kind of objects that `init` creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Secret,
    ConfigMap,
    Role,
    RoleBinding,
    /// Certificate of cert-manager.
    Certificate,
    SearchCluster,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Certificate => "Certificate",
            Self::SearchCluster => "SearchCluster",
        }
    }

    /// The kind's resource for calls.
    fn api_resource(self) -> ApiResource {
        match self {
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Role => ApiResource::erase::<Role>(&()),
            Self::RoleBinding => ApiResource::erase::<RoleBinding>(&()),
            Self::SearchCluster => ApiResource::erase::<SearchCluster>(&()),
            Self::Certificate => ApiResource::from_gvk(&GroupVersionKind::gvk(
                "cert-manager.io",
                "v1",
                "Certificate",
            )),
        }
    }
}

pub(crate) struct Made<'a> {
    pub(crate) session: &'a Session,
    pub(crate) dry_run: bool,
    pub(crate) objects: Vec<InitObject>,
}

impl<'a> Made<'a> {
    pub(crate) const fn new(session: &'a Session, dry_run: bool) -> Self {
        Self { session, dry_run, objects: Vec::new() }
    }

    pub(crate) fn note(&mut self, kind: Kind, name: &str, result: InitResult, message: &str) {
        self.objects.push(InitObject {
            kind: kind.as_str().to_owned(),
            name: name.to_owned(),
            result,
            message: message.to_owned(),
        });
    }

    fn objects(&self, kind: Kind) -> Objects<DynamicObject> {
        let objects = self.session.api().dynamic(&kind.api_resource(), &self.session.namespace);
        objects.dry_run(self.dry_run)
    }

    pub(crate) async fn find(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        self.objects(kind).find(name).await
    }

    /// The object as the type of its kind.
    pub(crate) async fn find_as<K>(&self, kind: Kind, name: &str) -> Result<Option<K>, InitError>
    where
        K: Resource + DeserializeOwned,
    {
        let there = self.find(kind, name).await?;
        there.map(|there| there.try_parse()).transpose().map_err(InitError::Answer)
    }

    pub(crate) async fn create(
        &self,
        kind: Kind,
        object: &Value,
    ) -> Result<DynamicObject, ApiError> {
        self.objects(kind).create(&serde_json::from_value(object.clone())?).await
    }

    pub(crate) async fn change(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<DynamicObject, ApiError> {
        self.objects(kind).merge(name, patch).await
    }

    /// Creates the object, or updates one of ours. Another's with the same content is left. `use_of` says what
    /// it is for.
    pub(crate) async fn ensure(
        &mut self,
        kind: Kind,
        object: Value,
        use_of: &str,
    ) -> Result<(), ApiError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let result = match self.find(kind, &name).await? {
            None => {
                self.create(kind, &object).await?;
                InitResult::Made
            }
            Some(there) if covers(&there.data, &content(&object)) => InitResult::Unchanged,
            Some(there) if !is_ours(&there.metadata) => {
                let remedy = format!(
                    "it was not made by stayput: delete it and run `init` again if it is not to stay; \
                     it would be for {use_of}"
                );
                self.note(kind, &name, InitResult::Left, &remedy);
                return Ok(());
            }
            Some(there) => {
                let mut patch = content(&object);
                patch["metadata"] = precondition(&there.metadata);
                self.change(kind, &name, &patch).await?;
                InitResult::Changed
            }
        };
        self.note(kind, &name, result, use_of);
        Ok(())
    }
}

/// The object without `apiVersion`, `kind` and `metadata`.
fn content(object: &Value) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let own = fields.filter(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str()));
    let own: serde_json::Map<String, Value> =
        own.map(|(key, value)| (key.clone(), value.clone())).collect();
    json!(own)
}

/// True if the object has all wanted fields. The apiserver, and others, add fields.
fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| there.get(key).is_some_and(|there| covers(there, value))),
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_others_are_no_difference() {
        let wanted = json!({"rules": [{"verbs": ["get"]}]});
        assert!(covers(&json!({"rules": [{"verbs": ["get"], "x": 1}], "y": 2}), &wanted));
        assert!(!covers(&json!({"rules": [{"verbs": ["get"]}, {}]}), &wanted));
        assert!(!covers(&json!({"rules": [{"verbs": ["patch"]}]}), &wanted));
        assert!(!covers(&json!({}), &wanted));
    }
}
