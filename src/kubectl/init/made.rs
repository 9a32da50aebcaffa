//! Creates objects, and records the results.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use stayput_kube_access::certificates::{is_ours, precondition};

use crate::apiserver::ApiError;
use crate::apiserver::objects::{Asked, Kind};
use crate::init::{InitObject, InitResult};
use crate::session::Session;

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

    pub(crate) fn left(&mut self, kind: Kind, name: &str, message: &str) {
        self.note(kind, name, InitResult::Left, message);
    }

    pub(crate) async fn find(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<Option<DynamicObject>, ApiError> {
        Asked::of(self.session).find_kind(kind, name).await
    }

    pub(crate) async fn create(
        &self,
        kind: Kind,
        object: &Value,
    ) -> Result<DynamicObject, ApiError> {
        Asked::of(self.session).create(kind, object, self.dry_run).await
    }

    pub(crate) async fn change(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<DynamicObject, ApiError> {
        Asked::of(self.session).change(kind, name, patch, self.dry_run).await
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
                self.left(kind, &name, &remedy);
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
