//! Which SearchCluster is meant.

use super::apiserver;
use super::connect::Session;
use super::failure::Failure;
use super::view::View;
use crate::cluster::SearchCluster;

/// The SearchCluster with this name, or the only one of the namespace.
pub(super) async fn cluster(
    session: &Session,
    name: Option<&str>,
) -> Result<SearchCluster, Failure> {
    let clusters = apiserver::clusters(session).await?;
    if clusters.is_empty() {
        return Err(none_here(session).await);
    }
    choose(clusters, name, &session.namespace).map_err(Failure::Failed)
}

/// The same, with its pods.
pub(super) async fn view(session: &Session, name: Option<&str>) -> Result<View, Failure> {
    let cluster = cluster(session, name).await?;
    look(session, &cluster).await
}

/// The SearchCluster that has all these nodes.
pub(super) async fn view_with(
    session: &Session,
    name: Option<&str>,
    nodes: &[String],
) -> Result<View, Failure> {
    let clusters = apiserver::clusters(session).await?;
    if clusters.is_empty() {
        return Err(none_here(session).await);
    }
    let mut views = Vec::new();
    if name.is_some() || clusters.len() == 1 {
        let one = choose(clusters, name, &session.namespace).map_err(Failure::Failed)?;
        views.push(look(session, &one).await?);
    } else {
        for cluster in &clusters {
            views.push(look(session, cluster).await?);
        }
    }
    with_nodes(views, nodes).map_err(Failure::Failed)
}

async fn look(session: &Session, cluster: &SearchCluster) -> Result<View, Failure> {
    let pods = match apiserver::selector(cluster) {
        Ok(_) => apiserver::pods(&session.client, cluster).await?,
        // Its status says what is wrong with the spec, which is what somebody wants to read now.
        Err(_) => Vec::new(),
    };
    Ok(View::of(cluster, pods.iter()))
}

async fn none_here(session: &Session) -> Failure {
    let elsewhere = apiserver::everywhere(session).await;
    let elsewhere: Vec<String> = elsewhere.iter().map(full_name).collect();
    let hint = match &elsewhere[..] {
        [] => "declare one, docs/first-ten-minutes.md shows how".to_owned(),
        names => format!("choose another with --namespace, there are {}", names.join(", ")),
    };
    Failure::Failed(format!("namespace {} has no SearchCluster: {hint}", session.namespace))
}

fn full_name(cluster: &SearchCluster) -> String {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", name_of(cluster))
}

fn name_of(cluster: &SearchCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

/// The one with this name, or the only one.
fn choose(
    clusters: Vec<SearchCluster>,
    name: Option<&str>,
    namespace: &str,
) -> Result<SearchCluster, String> {
    let names: Vec<&str> = clusters.iter().map(name_of).collect();
    let names = names.join(", ");
    let (count, mut fit) = match name {
        Some(name) => (1, clusters.into_iter().filter(|one| name_of(one) == name).collect()),
        None => (clusters.len(), clusters),
    };
    match (fit.pop(), name) {
        (Some(one), _) if count == 1 => Ok(one),
        (_, Some(name)) => {
            Err(format!("namespace {namespace} has no SearchCluster {name}; there are: {names}"))
        }
        (_, None) => Err(format!(
            "namespace {namespace} has {count} SearchClusters, say which one is meant: {names}"
        )),
    }
}

/// The only one that has all these nodes.
fn with_nodes(mut views: Vec<View>, nodes: &[String]) -> Result<View, String> {
    let missing = |view: &View| nodes.iter().find(|node| view.node(node).is_none()).cloned();
    let all: Vec<String> = views.iter().flat_map(View::node_names).collect();
    let unknown = views.iter().find_map(missing);
    views.retain(|view| missing(view).is_none());
    match (views.len(), views.pop(), unknown) {
        (1, Some(view), _) => Ok(view),
        (0, _, Some(node)) => Err(format!(
            "no SearchCluster looked at has {}; there are: {}",
            if nodes.len() == 1 { format!("a node {node}") } else { "all these nodes".into() },
            if all.is_empty() { "no nodes at all".into() } else { all.join(", ") }
        )),
        (_, last, _) => {
            let mut names: Vec<String> =
                views.iter().chain(&last).map(|v| v.name.clone()).collect();
            names.sort();
            Err(format!(
                "several SearchClusters have such nodes ({}): say which one with --cluster",
                names.join(", ")
            ))
        }
    }
}
