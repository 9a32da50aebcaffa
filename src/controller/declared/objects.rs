//! The objects of a declared cluster: reads them, applies them in their order, never takes over one that
//! another owner has, and deletes the config Secrets of node sets that are gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta};
use serde_json::{Value, json};
use stayput_declare::{
    self as declare, CLUSTER, Kind, NODE_SET, Object, Observed, ObservedSet, SeenSecret, garbage,
};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::pod::mounted_secrets;

use crate::apiserver::{ApiError, Apiserver, namespaced_name, only};
use crate::concurrency::join_limited;
use crate::declared::Verdict;
use crate::failure::Failure;
use crate::lease::Lease;

/// Name, uid and version of an object as it was read.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) name: String,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Version {
    fn of(metadata: &ObjectMeta) -> Self {
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }
}

fn resource(kind: Kind) -> ApiResource {
    match kind {
        Kind::Secret => ApiResource::erase::<Secret>(&()),
        Kind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
        Kind::Service => ApiResource::erase::<Service>(&()),
        Kind::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
    }
}

/// Selects the objects of a declared cluster. Names no resource version: the answer is from the store, not
/// from the apiserver's cache.
fn labelled(cluster: &str) -> ListParams {
    ListParams::default().labels(&format!("{CLUSTER}={cluster}"))
}

/// Lowers the count of a StatefulSet, if it is still the one that was read.
pub(super) async fn scale(
    api: &Apiserver,
    namespace: &str,
    there: &Version,
    replicas: u32,
) -> Result<(), ApiError> {
    let patch = json!({
        "metadata": { "uid": there.uid, "resourceVersion": there.resource_version },
        "spec": { "replicas": replicas },
    });
    api.objects::<StatefulSet>(namespace).merge(&there.name, &patch).await.map(drop)
}

/// Deletes a StatefulSet, if it is still the one that was read.
pub(super) async fn remove(
    api: &Apiserver,
    namespace: &str,
    there: &Version,
) -> Result<(), ApiError> {
    let read = only(there.uid.as_deref(), there.resource_version.as_deref());
    api.objects::<StatefulSet>(namespace).delete(&there.name, read).await
}

/// True if the SearchCluster with this uid owns the object.
pub(super) fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// Value of the label with the node set.
pub(super) fn node_set(metadata: &ObjectMeta) -> Option<&String> {
    metadata.labels.as_ref()?.get(NODE_SET)
}

/// The existing objects, and the StatefulSets of the node sets as they were read.
#[derive(Debug)]
pub(super) struct ExistingObjects {
    pub(super) observed: Observed,
    pub(super) objects: BTreeMap<String, Version>,
}

/// Reads the StatefulSets and the state of the bootstrap; ignores objects that the cluster does not own.
pub(super) async fn found(
    api: &Apiserver,
    cluster: &SearchCluster,
) -> Result<ExistingObjects, ApiError> {
    let (namespace, name) = namespaced_name(&cluster.metadata);
    let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
    let bootstrap = declare::bootstrap(name);
    let (stateful_sets, labelled) = (api.objects::<StatefulSet>(namespace), labelled(name));
    let config_maps = api.dynamic(&resource(Kind::ConfigMap), namespace);
    let (sets, bootstrap) =
        tokio::try_join!(stateful_sets.list(&labelled), config_maps.find(&bootstrap),)?;
    let (mut observed, mut objects) = (Observed::default(), BTreeMap::new());
    for set in sets.items.iter().filter(|set| is_owned(&set.metadata, uid)) {
        let Some(name) = node_set(&set.metadata) else { continue };
        observed.sets.insert(name.clone(), observed_set(set));
        objects.insert(name.clone(), Version::of(&set.metadata));
    }
    let bootstrap = bootstrap.filter(|object| is_owned(&object.metadata, uid));
    observed.bootstrap = bootstrap.map(|object| declare::Bootstrap::of(&object.data));
    Ok(ExistingObjects { observed, objects })
}

/// All volume claims of the namespace.
pub(super) async fn claims(
    api: &Apiserver,
    namespace: &str,
) -> Result<Vec<declare::SeenClaim>, ApiError> {
    let claims = api.objects::<PersistentVolumeClaim>(namespace);
    let list = claims.list_metadata(&ListParams::default()).await?.items.into_iter();
    let seen = |metadata: ObjectMeta| declare::SeenClaim {
        is_being_deleted: metadata.deletion_timestamp.is_some(),
        name: metadata.name.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
    };
    Ok(list.map(|claim| seen(claim.metadata)).collect())
}

fn observed_set(set: &StatefulSet) -> ObservedSet {
    let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    let annotations = set.metadata.annotations.as_ref();
    let declared = annotations.and_then(|all| all.get(declare::DECLARED));
    let template = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let init = template.and_then(|pod| pod.init_containers.as_ref());
    let manager = init.and_then(|all| all.iter().find(|one| one.name == declare::MANAGER));
    ObservedSet {
        manager_image: manager.and_then(|container| container.image.clone()),
        replicas: count(set.spec.as_ref().and_then(|spec| spec.replicas)).unwrap_or(1),
        ready: count(set.status.as_ref().and_then(|status| status.ready_replicas)).unwrap_or(0),
        declared: declared.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null),
    }
}

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
        let objects = api.dynamic(&resource(kind), &cluster.namespace);
        let written = objects.apply(name, &body, force).await?;
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
        let objects = api.dynamic(&resource(object.kind), namespace);
        let there = objects.find(&object.name).await?;
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

/// Deletes the Secrets that are due, and returns the time since which each of the others is unneeded, by uid.
pub(super) async fn collect(
    api: &Apiserver,
    cluster: &declare::Cluster,
    observed: &Observed,
    since: &BTreeMap<String, u64>,
    now: u64,
) -> Result<BTreeMap<String, u64>, ApiError> {
    let secrets = api.objects::<Secret>(&cluster.namespace);
    let listed = secrets.list(&labelled(&cluster.name)).await?;
    let own = listed.items.iter().filter(|secret| is_owned(&secret.metadata, &cluster.uid));
    let mut seen: Vec<SeenSecret> = own.filter_map(seen_secret).collect();
    let (_, candidates) = garbage(cluster, observed, &seen, since, now);
    if candidates.is_empty() {
        return Ok(candidates);
    }
    let pods = api.objects::<Pod>(&cluster.namespace).list(&ListParams::default()).await?;
    let mounted: BTreeSet<&str> = pods.items.iter().flat_map(mounted_secrets).collect();
    for secret in &mut seen {
        secret.mounted = mounted.contains(secret.name.as_str());
    }
    let (due, since) = garbage(cluster, observed, &seen, since, now);
    for secret in due {
        match secrets.delete(&secret.name, only(Some(&secret.uid), None)).await {
            Ok(()) => tracing::info!("deleted Secret {} of a removed node set", secret.name),
            // The Secret is gone, or another one has its name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(since)
}

fn seen_secret(secret: &Secret) -> Option<SeenSecret> {
    let metadata = &secret.metadata;
    Some(SeenSecret {
        name: metadata.name.clone()?,
        uid: metadata.uid.clone()?,
        node_set: node_set(metadata)?.clone(),
        mounted: false,
    })
}
