//! What is there of a declared cluster.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::Value;

use crate::controller::apiserver::{ApiError, Apiserver};
use stayput_declare::{self as declare, Kind, NODE_SET, Observed, ObservedSet};

/// Whether the SearchCluster with this uid owns it.
pub(super) fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
}

/// The label with the node set.
pub(super) fn node_set(metadata: &ObjectMeta) -> Option<&String> {
    metadata.labels.as_ref()?.get(NODE_SET)
}

/// Reads StatefulSets and the names of the first masters; only what the cluster owns.
pub(super) async fn observed(
    api: &Apiserver,
    cluster: &declare::Cluster,
) -> Result<Observed, ApiError> {
    let name = declare::bootstrap(&cluster.name);
    let (sets, bootstrap) = tokio::try_join!(
        api.stateful_sets(&cluster.namespace, &cluster.name),
        api.object(Kind::ConfigMap, &cluster.namespace, &name),
    )?;
    let own = sets.items.iter().filter(|set| is_owned(&set.metadata, &cluster.uid));
    let sets = own.filter_map(|set| Some((node_set(&set.metadata)?.clone(), observed_set(set))));
    let bootstrap = bootstrap.filter(|object| is_owned(&object.metadata, &cluster.uid));
    Ok(Observed { sets: sets.collect(), bootstrap: bootstrap.as_ref().map(names), formed: false })
}

fn names(object: &DynamicObject) -> Vec<String> {
    declare::first_masters(&object.data)
}

fn observed_set(set: &StatefulSet) -> ObservedSet {
    let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
    let annotations = set.metadata.annotations.as_ref();
    let declared = annotations.and_then(|all| all.get(declare::DECLARED));
    ObservedSet {
        replicas: count(set.spec.as_ref().and_then(|spec| spec.replicas)).unwrap_or(1),
        ready: count(set.status.as_ref().and_then(|status| status.ready_replicas)).unwrap_or(0),
        declared: declared.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null),
    }
}
