//! `stop` and `start`: keep nodes stopped, or no longer.

use super::{Told, annotate, contended};
use crate::kubectl::apiserver::{Unpatched, patch_pod};
use crate::kubectl::args::NodesArgs;
use crate::kubectl::connect::Session;
use crate::kubectl::failure::Failure;
use crate::kubectl::find;
use crate::kubectl::output::{ActOutput, Done};
use crate::kubectl::view::{Pod, View};
use stayput_restart::annotation;

/// Marks the nodes to be kept stopped.
pub(in crate::kubectl) async fn stop(session: &Session, args: &NodesArgs) -> Result<Told, Failure> {
    mark(session, args, Some("true"), Done::Stopped, cost).await
}

/// Takes the mark away.
pub(in crate::kubectl) async fn start(
    session: &Session,
    args: &NodesArgs,
) -> Result<Told, Failure> {
    mark(session, args, None, Done::Started, gain).await
}

async fn mark(
    session: &Session,
    args: &NodesArgs,
    value: Option<&str>,
    done: Done,
    page: fn(&View, &[String]) -> Result<String, String>,
) -> Result<Told, Failure> {
    let cluster = args.of.cluster.as_deref();
    let mut nodes = args.nodes.clone();
    nodes.sort();
    nodes.dedup();
    let view = find::view_with(session, cluster, &nodes).await?;
    let page = page(&view, &nodes).map_err(Failure::Failed)?;
    let mut output = ActOutput::new(&view, if args.dry_run { Done::Nothing } else { done });
    if args.dry_run {
        output.nodes = nodes;
        return Ok(Told { page: page + "Nothing was changed: this is a dry run.\n", output });
    }
    for node in &nodes {
        mark_one(session, view.clone(), node, value).await?;
    }
    output.nodes = nodes;
    Ok(Told { page, output })
}

async fn mark_one(
    session: &Session,
    mut view: View,
    node: &str,
    value: Option<&str>,
) -> Result<(), Failure> {
    for _ in 0..super::TRIES {
        let found = view.node(node).cloned();
        let gone = || Failure::Failed(format!("the pod of {node} is gone in the meantime"));
        let pod: Pod = found.ok_or_else(gone)?;
        if pod.stopped == value.is_some() {
            return Ok(());
        }
        let patch = annotate(&pod.version, pod.is_annotated, annotation::STOPPED, value);
        match patch_pod(session, &pod.name, patch).await {
            Ok(()) => return Ok(()),
            Err(Unpatched::Failure(failure)) => return Err(failure),
            Err(Unpatched::Changed) => {
                view = find::view(session, Some(&view.name)).await?;
            }
        }
    }
    Err(contended(&format!("the pod of {node}")))
}

/// What it costs to stop these.
fn cost(view: &View, nodes: &[String]) -> Result<String, String> {
    let left = view
        .pods
        .iter()
        .filter(|pod| !nodes.contains(&pod.node) && !view.is_kept_stopped(pod))
        .count();
    let them = nodes.join(", ");
    let mut page = format!(
        "{them}: stopped as soon as the rules allow it, and kept stopped until `kubectl stayput \
         start {}`\n",
        nodes.join(" ")
    );
    page += &format!(
        "until then: {left} of {} nodes of {} serve; shards have a copy less, so the cluster is \
         yellow at best, and restarts pass over what is kept stopped\n",
        view.pods.len(),
        view.name
    );
    if left == 0 {
        page += "NO node is left: this is an outage\n";
    }
    if view.paused {
        page += "nothing is stopped while spec.paused is true\n";
    }
    page += &format!("`kubectl stayput why {}` says what it waits for\n", nodes[0]);
    Ok(page)
}

/// What it brings to start these.
fn gain(view: &View, nodes: &[String]) -> Result<String, String> {
    let by_spec: Vec<&String> = nodes.iter().filter(|node| view.stopped.contains(*node)).collect();
    if let Some(node) = by_spec.first() {
        return Err(format!(
            "spec.stopped of SearchCluster {} names {node}: take it out there, `kubectl edit \
             searchcluster {}`; nothing was changed",
            view.name, view.name
        ));
    }
    Ok(format!("{}: told to run, on the config that is mounted\n", nodes.join(", ")))
}
