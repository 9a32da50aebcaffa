//! `stop` and `start`: set and remove the annotation that keeps a node stopped.

use k8s_openapi::api::core::v1::Pod;
use stayput_restart::annotation;

use crate::actions::{ActionError, ActionReport, ActionResult, Attempts, confirm, set_annotation};
use crate::args::{NodesArgs, StopArgs};
use crate::selection;
use crate::session::Session;
use crate::view::ClusterView;

/// Keeps the nodes stopped.
pub(crate) async fn stop(
    session: &Session,
    StopArgs { nodes: args, yes }: &StopArgs,
) -> Result<ActionReport, ActionError> {
    let (view, nodes) = select(session, args).await?;
    if remaining(&view, &nodes) == 0 && !args.dry_run && !yes {
        confirm(format!("This is an outage: no node of {} is left.", view.name))?;
    }
    let page = stop_page(&view, &nodes);
    apply(session, args, &view, nodes, Some("true"), ActionResult::StopRequested, page).await
}

/// Keeps the nodes stopped no longer.
pub(crate) async fn start(
    session: &Session,
    args: &NodesArgs,
) -> Result<ActionReport, ActionError> {
    let (view, nodes) = select(session, args).await?;
    if let Some(node) = nodes.iter().find(|node| view.kept_stopped_by_spec.contains(*node)) {
        let edit = view.kubectl(&format!("edit searchcluster {}", view.name));
        let (cluster, node) = (view.name, node.clone());
        return Err(ActionError::KeptStoppedBySpec { cluster, node, edit });
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
    let (result, page) = if args.dry_run {
        (ActionResult::DryRun, page + "This is a dry run: nothing was changed.\n")
    } else {
        let mut changed = Vec::new();
        for node in &nodes {
            match annotate(session, view.clone(), node, value).await {
                Ok(true) => changed.push(node.clone()),
                Ok(false) => {}
                Err(error) => return Err(failed_at(view, changed, node, value, error)),
            }
        }
        (result, page)
    };
    let mut report = ActionReport::new(view, result, page);
    report.output.nodes = nodes;
    Ok(report)
}

/// The error of a node, with the changes before it, which stay.
fn failed_at(
    view: &ClusterView,
    done: Vec<String>,
    node: &str,
    value: Option<&str>,
    error: ActionError,
) -> ActionError {
    if done.is_empty() {
        return error;
    }
    let back = view.command_for(if value.is_some() { "start" } else { "stop" }, &done);
    let (node, error) = (node.to_owned(), Box::new(error));
    ActionError::Partly { done, node, error, back }
}

/// Sets or removes the annotation of one node. True if that changed something.
async fn annotate(
    session: &Session,
    mut view: ClusterView,
    node: &str,
    value: Option<&str>,
) -> Result<bool, ActionError> {
    let mut attempts = Attempts::default();
    loop {
        let pod = view.pod_of_node(node).ok_or_else(|| ActionError::PodGone(node.to_owned()))?;
        if pod.kept_stopped_by_annotation == value.is_some() {
            return Ok(false);
        }
        let (version, key) = (&pod.resource_version, annotation::STOPPED);
        attempts.next("pod", &pod.name, version)?;
        let patch = set_annotation(version, pod.has_annotations, key, value);
        if attempts.taken(version, session.objects::<Pod>().patch(&pod.name, patch).await)? {
            return Ok(true);
        }
        view = selection::view(session, Some(&view.name)).await?;
    }
}

/// Text about the nodes that will be started, and those that were not stopped by `stop`.
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

/// Number of nodes that serve when these are stopped.
fn remaining(view: &ClusterView, nodes: &[String]) -> usize {
    let remains =
        view.pods.iter().filter(|pod| !nodes.contains(&pod.node) && !view.is_kept_stopped(pod));
    remains.count()
}

/// Text about the stop: its effect on the nodes, and its cost.
fn stop_page(view: &ClusterView, nodes: &[String]) -> String {
    let remaining = remaining(view, nodes);
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
