//! The kinds of object that are served: those built in, and those that stored CRDs declare.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) mod builtin;
pub(super) mod custom;
pub(super) mod discovery;
pub(super) mod openapi;

/// One kind of object at one version of its API.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) namespaced: bool,
    /// Whether `status` is written through a subresource only.
    pub(super) status: bool,
    /// The name under which its objects are stored: versions or groups may share it.
    pub(super) storage: String,
    pub(super) nature: Nature,
}

/// Where a kind comes from, and how it behaves.
#[derive(Debug, Clone)]
pub(super) enum Nature {
    Builtin(&'static builtin::Rules),
    /// The structural schema of this version.
    Custom(std::sync::Arc<Value>),
}

impl Resource {
    /// `pods`, or `searchclusters.stayput.dev`: its name in messages.
    pub(super) fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The `apiVersion` of its objects.
    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The schema, if a CRD declares it.
    pub(super) fn schema(&self) -> Option<&Value> {
        match &self.nature {
            Nature::Builtin(_) => None,
            Nature::Custom(schema) => Some(schema),
        }
    }

    /// A PUT without `resourceVersion` overwrites the object.
    pub(super) fn unconditional_update(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.unconditional_update)
    }

    /// A PUT of an object that does not exist creates it.
    pub(super) fn create_on_update(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.create_on_update)
    }

    /// DELETE answers the object and not a `Status`.
    pub(super) fn returns_deleted(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.returns_deleted)
    }

    /// Whether `metadata.generation` counts changes of the spec.
    pub(super) fn has_generation(&self) -> bool {
        match &self.nature {
            Nature::Builtin(rules) => rules.generation,
            Nature::Custom(_) => true,
        }
    }

    /// The object as stored: checked, and without fields the kind does not have.
    pub(super) fn decode(&self, object: Value) -> Result<Value, String> {
        match &self.nature {
            Nature::Builtin(rules) => (rules.decode)(object),
            Nature::Custom(_) => Ok(object),
        }
    }

    /// The object as this version shows it.
    pub(super) fn encode(&self, object: &Value) -> Value {
        match &self.nature {
            Nature::Builtin(rules) => (rules.encode)(object),
            Nature::Custom(_) => {
                let mut object = object.clone();
                object["apiVersion"] = json!(self.api_version());
                object
            }
        }
    }
}

/// All kinds that are served.
#[derive(Debug)]
pub(super) struct Catalog {
    builtin: Vec<Resource>,
    /// Those of CRDs, by the CRD's name.
    custom: BTreeMap<String, Vec<Resource>>,
}

impl Catalog {
    pub(super) fn new() -> Self {
        Self { builtin: builtin::resources(), custom: BTreeMap::new() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Resource> {
        self.builtin.iter().chain(self.custom.values().flatten())
    }

    pub(super) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.all().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }

    /// Whether the group is built in; for these the real server gives more details in errors.
    pub(super) fn is_builtin(&self, group: &str) -> bool {
        self.builtin.iter().any(|resource| resource.group == group)
    }

    /// Serves what the CRD `name` declares; with `None`, nothing any more.
    pub(super) fn declare(&mut self, name: &str, definition: Option<&Value>) {
        match definition {
            Some(definition) => self.custom.insert(name.to_owned(), custom::resources(definition)),
            None => self.custom.remove(name),
        };
    }

    /// The kinds whose objects live in the namespace that contains them.
    pub(super) fn namespaced_storages(&self) -> Vec<String> {
        self.all()
            .filter(|resource| resource.namespaced)
            .map(|resource| resource.storage.clone())
            .collect()
    }
}
