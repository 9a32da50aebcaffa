//! Finds the SearchCluster that a command is about.

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use stayput_kube_access::cluster::SearchCluster;

use crate::apiserver::{self, ApiError};
use crate::error::Exit;
use crate::leader::Reconciler;
use crate::session::Session;
use crate::view::ClusterView;

/// Why no SearchCluster, or none alone, fits what the command names.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(
        "namespace {namespace} has no SearchCluster: declare one, docs/first-ten-minutes.md shows \
         how"
    )]
    NoCluster { namespace: String },
    #[error("no namespace has a SearchCluster: declare one, docs/first-ten-minutes.md shows how")]
    NoClusterAnywhere,
    #[error(
        "namespace {namespace} has no SearchCluster: choose another with --namespace, there are {}",
        elsewhere.join(", ")
    )]
    OtherNamespace { namespace: String, elsewhere: Vec<String> },
    #[error(
        "namespace {namespace} has no SearchCluster {name}; there are: {}",
        known.join(", ")
    )]
    UnknownCluster { namespace: String, name: String, known: Vec<String> },
    #[error(
        "namespace {namespace} has {} SearchClusters, choose one: {}",
        known.len(),
        known.join(", ")
    )]
    SeveralClusters { namespace: String, known: Vec<String> },
    #[error("no SearchCluster has {}; there are: {}", a_node_or_all(nodes, missing), list(known))]
    UnknownNode { nodes: Vec<String>, missing: String, known: Vec<String> },
    #[error(
        "several SearchClusters have such nodes ({}): choose one with --cluster",
        clusters.join(", ")
    )]
    NodesInSeveralClusters { clusters: Vec<String> },
}

impl SelectionError {
    pub(crate) fn exit(&self) -> Exit {
        if let Self::Api(error) = self { error.into() } else { Exit::Failed }
    }
}

fn a_node_or_all(nodes: &[String], missing: &str) -> String {
    if nodes.len() == 1 { format!("a node {missing}") } else { "all these nodes".into() }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "no nodes at all".into() } else { names.join(", ") }
}

/// The SearchCluster with this name, or the only one of the namespace.
pub(crate) async fn cluster(
    session: &Session,
    name: Option<&str>,
) -> Result<SearchCluster, SelectionError> {
    choose(clusters(session).await?, name, &session.namespace)
}

/// All SearchClusters of all namespaces; at least one.
pub(crate) async fn everywhere(session: &Session) -> Result<Vec<SearchCluster>, SelectionError> {
    let clusters = apiserver::all_clusters(session).await?;
    if clusters.is_empty() { Err(SelectionError::NoClusterAnywhere) } else { Ok(clusters) }
}

/// Views of all SearchClusters of all namespaces, without their pods: with many clusters, only facts of
/// the status are shown.
pub(crate) async fn views_everywhere(
    session: &Session,
) -> Result<Vec<ClusterView>, SelectionError> {
    let mut views = without_pods(&everywhere(session).await?);
    let reconciler = Reconciler::seen(&session.client).await;
    for view in &mut views {
        view.reconciler.clone_from(&reconciler);
        view.options = session.options_in_shell();
    }
    views.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Ok(views)
}

pub(crate) fn without_pods(clusters: &[SearchCluster]) -> Vec<ClusterView> {
    clusters.iter().map(|cluster| ClusterView::from_objects(cluster, [])).collect()
}

/// One SearchCluster, with its pods.
pub(crate) async fn view(
    session: &Session,
    name: Option<&str>,
) -> Result<ClusterView, SelectionError> {
    let cluster = cluster(session, name).await?;
    let view = with_pods(session, &cluster).await?;
    Ok(as_seen_by(session, view).await)
}

/// Adds the facts that are the same for all SearchClusters of the session.
pub(crate) async fn as_seen_by(session: &Session, view: ClusterView) -> ClusterView {
    let reconciler = Reconciler::seen(&session.client).await;
    ClusterView { reconciler, options: session.options_in_shell(), ..view }
}

/// The SearchCluster that has all these nodes, with its pods.
pub(crate) async fn view_with_nodes(
    session: &Session,
    name: Option<&str>,
    nodes: &[String],
) -> Result<ClusterView, SelectionError> {
    let clusters = clusters(session).await?;
    let views = if name.is_some() || clusters.len() == 1 {
        let chosen = choose(clusters, name, &session.namespace)?;
        vec![with_pods(session, &chosen).await?]
    } else {
        all_with_pods(session, &clusters).await?
    };
    Ok(as_seen_by(session, choose_with_nodes(views, nodes)?).await)
}

/// All SearchClusters of the namespace, with their pods.
pub(crate) async fn views(session: &Session) -> Result<Vec<ClusterView>, SelectionError> {
    all_with_pods(session, &apiserver::clusters(session).await?).await
}

async fn all_with_pods(
    session: &Session,
    clusters: &[SearchCluster],
) -> Result<Vec<ClusterView>, SelectionError> {
    let mut views = Vec::new();
    for cluster in clusters {
        views.push(with_pods(session, cluster).await?);
    }
    Ok(views)
}

/// The SearchClusters of the namespace: at least one.
pub(crate) async fn clusters(session: &Session) -> Result<Vec<SearchCluster>, SelectionError> {
    let clusters = apiserver::clusters(session).await?;
    if !clusters.is_empty() {
        return Ok(clusters);
    }
    let namespace = session.namespace.clone();
    let elsewhere = apiserver::all_clusters(session).await.unwrap_or_default();
    if elsewhere.is_empty() {
        return Err(SelectionError::NoCluster { namespace });
    }
    let elsewhere = elsewhere.iter().map(full_name).collect();
    Err(SelectionError::OtherNamespace { namespace, elsewhere })
}

async fn with_pods(
    session: &Session,
    cluster: &SearchCluster,
) -> Result<ClusterView, SelectionError> {
    let pods = pods(&session.client, cluster).await?;
    Ok(ClusterView::from_objects(cluster, &pods))
}

/// The pods of the SearchCluster; an empty list for a selector that cannot be used: the status says what is
/// wrong with the spec, and that is to be shown instead of an error.
pub(crate) async fn pods(client: &Client, cluster: &SearchCluster) -> Result<Vec<Pod>, ApiError> {
    match apiserver::selector(cluster) {
        Ok(_) => apiserver::pods(client, cluster).await,
        Err(_) => Ok(Vec::new()),
    }
}

fn full_name(cluster: &SearchCluster) -> String {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", name_of(cluster))
}

fn name_of(cluster: &SearchCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

/// The SearchCluster with this name; without a name, the only one.
fn choose(
    clusters: Vec<SearchCluster>,
    name: Option<&str>,
    namespace: &str,
) -> Result<SearchCluster, SelectionError> {
    let known: Vec<String> = clusters.iter().map(|one| name_of(one).to_owned()).collect();
    let namespace = namespace.to_owned();
    let Some(name) = name else {
        let mut clusters = clusters.into_iter();
        return match (clusters.next(), clusters.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(SelectionError::SeveralClusters { namespace, known }),
        };
    };
    let found = clusters.into_iter().find(|one| name_of(one) == name);
    found.ok_or_else(|| SelectionError::UnknownCluster { namespace, name: name.to_owned(), known })
}

/// The only SearchCluster that has all these nodes.
fn choose_with_nodes(
    mut views: Vec<ClusterView>,
    nodes: &[String],
) -> Result<ClusterView, SelectionError> {
    let missing =
        |view: &ClusterView| nodes.iter().find(|node| view.pod_of_node(node).is_none()).cloned();
    let known: Vec<String> = views.iter().flat_map(ClusterView::node_names).collect();
    let first_missing = views.iter().find_map(missing);
    views.retain(|view| missing(view).is_none());
    match (views.len(), views.pop(), first_missing) {
        (1, Some(view), _) => Ok(view),
        (0, _, Some(missing)) => {
            Err(SelectionError::UnknownNode { nodes: nodes.to_vec(), missing, known })
        }
        (_, last, _) => {
            let names = views.iter().chain(&last).map(|view| view.name.clone());
            let mut clusters: Vec<String> = names.collect();
            clusters.sort();
            Err(SelectionError::NodesInSeveralClusters { clusters })
        }
    }
}
