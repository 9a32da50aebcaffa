//! `stop` and `start`: set and remove the annotation that keeps a node stopped.

use super::error::ActionError;
use super::patch::{MAX_ATTEMPTS, set_annotation};
use super::report::{self, ActionReport};
use crate::kubectl::apiserver::patch_pod;
use crate::kubectl::args::NodesArgs;
use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::json::ActionResult;
use crate::kubectl::selection;
use crate::kubectl::session::Session;
use stayput_restart::annotation;

/// Keeps the nodes stopped.
pub(in crate::kubectl) async fn stop(
    session: &Session,
    args: &NodesArgs,
) -> Result<ActionReport, ActionError> {
    let (view, nodes) = select(session, args).await?;
    let page = stop_page(&view, &nodes);
    apply(session, args, &view, nodes, Some("true"), ActionResult::StopRequested, page).await
}

/// Keeps the nodes stopped no longer.
pub(in crate::kubectl) async fn start(
    session: &Session,
    args: &NodesArgs,
) -> Result<ActionReport, ActionError> {
    let (view, nodes) = select(session, args).await?;
    if let Some(node) = nodes.iter().find(|node| view.kept_stopped_by_spec.contains(*node)) {
        let (cluster, node) = (view.name, node.clone());
        return Err(ActionError::KeptStoppedBySpec { cluster, node });
    }
    let page = start_page(&view, &nodes);
    apply(session, args, &view, nodes, None, ActionResult::StartRequested, page).await
}

/// The SearchCluster, and the nodes without doubles.
async fn select(
    session: &Session,
    args: &NodesArgs,
) -> Result<(ClusterView, Vec<String>), ActionError> {
    let mut nodes = args.nodes.clone();
    nodes.sort();
    nodes.dedup();
    let view = selection::view_with_nodes(session, args.cluster.name.as_deref(), &nodes).await?;
    Ok((view, nodes))
}

async fn apply(
    session: &Session,
    args: &NodesArgs,
    view: &ClusterView,
    nodes: Vec<String>,
    value: Option<&str>,
    result: ActionResult,
    page: String,
) -> Result<ActionReport, ActionError> {
    let (result, page) = match args.dry_run {
        true => (ActionResult::DryRun, page + "This is a dry run: nothing was changed.\n"),
        false => {
            for node in &nodes {
                annotate(session, view.clone(), node, value).await?;
            }
            (result, page)
        }
    };
    let mut output = report::output(view, result);
    output.nodes = nodes;
    Ok(ActionReport { page, output })
}

async fn annotate(
    session: &Session,
    mut view: ClusterView,
    node: &str,
    value: Option<&str>,
) -> Result<(), ActionError> {
    for _ in 0..MAX_ATTEMPTS {
        let pod = view.pod_of_node(node).ok_or_else(|| ActionError::PodGone(node.to_owned()))?;
        if pod.kept_stopped_by_annotation == value.is_some() {
            return Ok(());
        }
        let (version, key) = (&pod.resource_version, annotation::STOPPED);
        let patch = set_annotation(version, pod.has_annotations, key, value);
        match patch_pod(session, &pod.name, patch).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_conflict() => {
                view = selection::view(session, Some(&view.name)).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ActionError::Conflict { object: format!("the pod of {node}") })
}

/// Which nodes will be started, and which were not stopped by `stop`.
fn start_page(view: &ClusterView, nodes: &[String]) -> String {
    let is_kept =
        |node: &&String| view.pod_of_node(node).is_some_and(|pod| pod.kept_stopped_by_annotation);
    let (kept, others): (Vec<&String>, Vec<&String>) = nodes.iter().partition(is_kept);
    let kept = kept.iter().map(|node| format!("{node}: will be started on the mounted config\n"));
    let others = others.iter().map(|node| {
        format!(
            "{node}: nothing is changed, because no annotation keeps it stopped; if it is down, \
             `{}` says how to start it\n",
            view.command_for("why", std::slice::from_ref(*node))
        )
    });
    kept.chain(others).collect()
}

/// What happens to the nodes, and what it costs.
fn stop_page(view: &ClusterView, nodes: &[String]) -> String {
    let remains =
        view.pods.iter().filter(|pod| !nodes.contains(&pod.node) && !view.is_kept_stopped(pod));
    let remaining = remains.count();
    let mut page = format!(
        "{}: stopped as soon as the rules allow it, and kept stopped until `{}`\n",
        nodes.join(", "),
        view.command_for("start", nodes)
    );
    page += &format!(
        "until then {remaining} of {} nodes of {} serve; shards have one copy less, so the cluster \
         is yellow at best, and restarts leave out nodes that are kept stopped\n",
        view.pods.len(),
        view.name
    );
    if remaining == 0 {
        page += "NO node is left: this is an outage\n";
    }
    if view.paused {
        page += "nothing is stopped while spec.paused is true\n";
    }
    if let Some(first) = nodes.get(..1) {
        page += &format!("`{}` shows what it waits for\n", view.command_for("why", first));
    }
    page
}
