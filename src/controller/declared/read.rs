//! Reads the existing objects of a declared cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::ObjectMeta;
use serde_json::Value;

use crate::apiserver::{ApiError, Apiserver, Version, namespaced_name};
use crate::failure::Failure;
use stayput_declare::{self as declare, Kind, NODE_SET, Observed, ObservedSet};
use stayput_kube_access::cluster::SearchCluster;

/// True if the SearchCluster with this uid owns the object.
pub(super) fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// Value of the label with the node set.
pub(super) fn node_set(metadata: &ObjectMeta) -> Option<&String> {
    metadata.labels.as_ref()?.get(NODE_SET)
}

/// The existing objects, and the versions of the StatefulSets that were read.
#[derive(Debug)]
pub(super) struct ExistingObjects {
    pub(super) observed: Observed,
    objects: BTreeMap<String, Version>,
}

impl ExistingObjects {
    /// The StatefulSet of a node set as it was read.
    pub(super) fn object(&self, set: &str) -> Result<&Version, Failure> {
        self.objects.get(set).ok_or(Failure::StatusOvertaken)
    }
}

/// Reads the StatefulSets and the state of the bootstrap; ignores objects that the cluster does not own.
pub(super) async fn found(
    api: &Apiserver,
    cluster: &SearchCluster,
) -> Result<ExistingObjects, ApiError> {
    let (namespace, name) = namespaced_name(&cluster.metadata);
    let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
    let bootstrap = declare::bootstrap(name);
    let (sets, bootstrap) = tokio::try_join!(
        api.stateful_sets(namespace, name),
        api.object(Kind::ConfigMap, namespace, &bootstrap),
    )?;
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
    let list = api.claims(namespace).await?.items.into_iter();
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
