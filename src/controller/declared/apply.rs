//! Applies objects, in their order, and never takes over one that another owner has.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::Verdict;
use super::read::is_owned;
use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::failure::Failure;
use crate::lease::Lease;
use stayput_declare::{self as declare, Kind, Object};

/// Kind and name.
type Key = (Kind, String);

/// Last applied body of each object, and the object's version after it.
#[derive(Debug, Default)]
pub(super) struct Applied(BTreeMap<Key, (Value, Option<String>)>);

impl Applied {
    /// Applies the objects that differ, one after the other; true if that changed any. Every object is read
    /// first: if the SearchCluster does not own one of them, nothing is applied at all.
    pub(super) async fn make(
        &mut self,
        (api, lease): (&Apiserver, &Lease),
        cluster: &declare::Cluster,
        objects: &[Object],
    ) -> Result<bool, Verdict> {
        let mut there = read(api, &cluster.namespace, objects)
            .await
            .map_err(|error| Verdict::Failed(error.into()))?;
        let is_foreign = |object: &&Object| {
            let found = there.get(&key(object));
            found.is_some_and(|found| !is_owned(&found.metadata, &cluster.uid))
        };
        let foreign = objects.iter().filter(is_foreign);
        let foreign: Vec<String> =
            foreign.map(|object| format!("{} {}", object.kind, object.name)).collect();
        if !foreign.is_empty() {
            return Err(Verdict::Foreign(foreign));
        }
        let mut is_changed = false;
        for object in objects {
            let there = there.remove(&key(object));
            is_changed |=
                self.apply((api, lease), cluster, object, there).await.map_err(Verdict::Failed)?;
        }
        Ok(is_changed)
    }

    async fn apply(
        &mut self,
        (api, lease): (&Apiserver, &Lease),
        cluster: &declare::Cluster,
        object: &Object,
        there: Option<DynamicObject>,
    ) -> Result<bool, Failure> {
        let key = key(object);
        let is_same = |there: &DynamicObject| {
            let last = self.0.get(&key);
            last.is_some_and(|(body, seen)| {
                *body == object.body && *seen == version(object.kind, there)
            })
        };
        if there.as_ref().is_some_and(is_same) {
            return Ok(false);
        }
        let mut body = object.body.clone();
        // With uid and version, the apiserver refuses the write if the object is another one by now, or was
        // written since: this process may have been suspended, and another replica may have made something
        // newer. Without an existing object, `force` is false: if somebody has made one meanwhile, their
        // fields are not taken over.
        if let Some(there) = &there {
            body["metadata"]["uid"] = json!(there.metadata.uid);
            body["metadata"]["resourceVersion"] = json!(there.metadata.resource_version);
        }
        if !lease.is_held() {
            return Err(Failure::LeaseLost);
        }
        let force = there.is_some();
        let (kind, name) = (object.kind, object.name.as_str());
        let written = api.apply(kind, &cluster.namespace, name, &body, force).await?;
        let before = there.and_then(|there| there.metadata.resource_version);
        let is_changed = before != written.metadata.resource_version;
        if is_changed {
            tracing::info!("applied {kind} {name}");
        }
        self.0.insert(key, (object.body.clone(), version(kind, &written)));
        Ok(is_changed)
    }
}

fn key(object: &Object) -> Key {
    (object.kind, object.name.clone())
}

/// Reads the objects that exist.
async fn read(
    api: &Apiserver,
    namespace: &str,
    objects: &[Object],
) -> Result<BTreeMap<Key, DynamicObject>, ApiError> {
    let get = async |object: &Object| {
        let there = api.object(object.kind, namespace, &object.name).await?;
        Ok(there.map(|there| (key(object), there)))
    };
    let answers = join_limited(objects.iter().map(get).collect()).await;
    answers.into_iter().filter_map(Result::transpose).collect()
}

/// Version of the fields that people write. The status of a StatefulSet changes all the time, so its
/// generation counts.
fn version(kind: Kind, object: &DynamicObject) -> Option<String> {
    match kind {
        Kind::StatefulSet => object.metadata.generation.map(|generation| generation.to_string()),
        Kind::Secret | Kind::ConfigMap | Kind::Service => object.metadata.resource_version.clone(),
    }
}
