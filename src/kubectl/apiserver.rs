//! Calls to the apiserver that several commands make.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::ListParams;
use kube::core::Selector;
pub(crate) use stayput_kube_access::apiserver::{ApiError, Apiserver};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::Time;

use crate::error::Exit;
use crate::session::Session;

impl From<&ApiError> for Exit {
    fn from(error: &ApiError) -> Self {
        match error {
            ApiError::Unreachable { .. } | ApiError::Timeout { .. } => Self::NotReachable,
            ApiError::Refused { .. }
            | ApiError::Incomplete(_)
            | ApiError::InvalidObject(_)
            | ApiError::InvalidSpec { .. } => Self::Failed,
        }
    }
}

/// Every SearchCluster of the namespace, by name.
pub(crate) async fn clusters(session: &Session) -> Result<Vec<SearchCluster>, ApiError> {
    let list = session.objects().list(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(SearchCluster::completed).collect())
}

/// Every SearchCluster of all namespaces.
pub(crate) async fn all_clusters(session: &Session) -> Result<Vec<SearchCluster>, ApiError> {
    let list = session.api().everywhere().list(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(SearchCluster::completed).collect())
}

/// The pods that the SearchCluster selects.
pub(crate) async fn pods(client: &Client, cluster: &SearchCluster) -> Result<Vec<Pod>, ApiError> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let params = ListParams::default().labels_from(&selector(cluster)?);
    Ok(Apiserver::for_kubectl(client.clone()).objects(namespace).list(&params).await?.items)
}

/// The selector of the SearchCluster's pods, also if another part of the spec is wrong. Fails without a
/// usable one: an empty selector would select every pod.
pub(crate) fn selector(cluster: &SearchCluster) -> Result<Selector, ApiError> {
    let faults = || cluster.check().err().unwrap_or_default();
    let usable = cluster.salvage().map(|usable| usable.pods);
    usable.ok_or_else(|| ApiError::InvalidSpec {
        cluster: cluster.metadata.name.clone().unwrap_or_default(),
        faults: faults().iter().map(ToString::to_string).collect(),
    })
}

/// The result of a write; an object that is gone needs none.
pub(crate) fn unless_gone<T>(written: Result<T, ApiError>) -> Result<(), ApiError> {
    match written {
        Err(error) if error.is_not_found() => Ok(()),
        written => written.map(drop),
    }
}

/// The installed definition of the SearchCluster.
pub(crate) async fn definition(
    client: &Client,
) -> Result<Option<CustomResourceDefinition>, ApiError> {
    let definitions = Apiserver::for_kubectl(client.clone()).everywhere();
    definitions.find("searchclusters.stayput.dev").await
}

/// Time of the apiserver's clock, from the date in its answer.
pub(crate) async fn time(client: &Client) -> Result<Time, ApiError> {
    let date = Apiserver::for_kubectl(client.clone()).time().await?;
    let seconds = date.ok_or_else(|| ApiError::Incomplete("date that can be read".into()))?;
    Ok(Time(seconds * 1000))
}
