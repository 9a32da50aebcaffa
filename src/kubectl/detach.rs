//! `detach`: removes a cluster from stayput. First the reconciler undoes all its open changes; then only
//! the managers in the pods are left, which go on.
//!
//! * [`refusals`]: checks if the cluster may be detached; else it has the commands to undo changes by hand. Pure.
//! * [`clean`]: the steps, for a person to confirm; removes stayput's annotations.
//!
//! A finalizer keeps the SearchCluster until all is done, so that a command that was interrupted can be repeated.

mod clean;
mod refusals;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io::{self, Write};

use json_patch::Patch;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};
use stayput_api::Span;
use stayput_http::terminal::plain;
use stayput_kube_access::apiserver::root_cause;
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::patch_operations::{is_at_version, set_finalizers};
use stayput_restart::annotation;
use tokio::time::timeout;

use crate::actions::{ActionError, ActionOutput, ActionReport, ActionResult, Attempts, requests};
use crate::apiserver::ApiError;
use crate::args::DetachArgs;
use crate::detach::refusals::{Refusal, may};
use crate::error::Exit;
use crate::format::duration_as_given;
use crate::selection::SelectionError;
use crate::session::Session;
use crate::view::ClusterView;
use crate::{actions, apiserver, selection};

/// Deletes the SearchCluster, and removes all traces of stayput from pods and Secrets.
pub(crate) async fn detach(
    session: &Session,
    args: &DetachArgs,
) -> Result<ActionReport, DetachError> {
    let cluster = selection::cluster(session, args.cluster.name.as_deref()).await?;
    let pods = apiserver::pods(&session.client, &cluster).await?;
    let view = ClusterView::from_objects(&cluster, &pods);
    let view = selection::as_seen_by(session, view).await;
    let no_reconciler = view.reconciler.why_absent();
    may(&cluster, &view, no_reconciler, args.cancel)?;
    let ends = no_reconciler.is_none() && args.cancel;
    let steps = clean::steps(&view, &cluster, &pods, ends);
    let shown: String = steps.iter().map(|step| format!("{step}\n")).collect();
    if args.dry_run {
        let page = shown + "This is a dry run: nothing was changed.\n";
        return Ok(report(&view, ActionResult::DryRun, steps, page));
    }
    if !args.yes {
        actions::confirm(format!("{shown}Detach {}/{}?", view.namespace, view.name))?;
    }
    let detached = Box::pin(carry_out(session, &cluster, ends));
    let said = match args.timeout {
        None => detached.await?,
        Some(limit) => {
            let detached = timeout(limit.to_duration(), detached).await;
            detached
                .map_err(|_| DetachError::TimedOut { status: view.command("status"), limit })??
        }
    };
    let page = format!(
        "{}/{} is detached: there are no debts, and its pods keep running\n{said}the managers stay in \
         the pods and \
         work without a reconciler; `kubectl stayput uninject` takes them out of manifests\n",
        view.namespace, view.name
    );
    Ok(report(&view, ActionResult::Detached, steps, page))
}

/// The report. That no reconciler works is no warning: nobody has to do anything any more.
fn report(
    view: &ClusterView,
    result: ActionResult,
    steps: Vec<String>,
    page: String,
) -> ActionReport {
    let ActionReport { page, output } = ActionReport::new(view, result, page);
    let nodes = view.node_names().collect();
    ActionReport { page, output: ActionOutput { nodes, steps, reconciler: None, ..output } }
}

/// All steps in their order, of which `ends` is the end of restarts. Returns notes for a person.
async fn carry_out(
    session: &Session,
    cluster: &SearchCluster,
    ends: bool,
) -> Result<String, DetachError> {
    if ends {
        end_restarts(session, cluster).await?;
    }
    add_finalizer(session, &cluster.name_any()).await?;
    delete(session, cluster).await?;
    let pods = apiserver::pods(&session.client, cluster).await?;
    let said = clean::pods(session, cluster, &pods).await?
        + &clean::secrets(session, cluster, &pods).await;
    take_finalizer_off(session, &cluster.name_any()).await?;
    until_gone(session, cluster).await?;
    Ok(said)
}

/// Cancels the requests that wait, and the restart under way, and waits for its end.
async fn end_restarts(session: &Session, cluster: &SearchCluster) -> Result<(), DetachError> {
    let name = cluster.name_any();
    loop {
        let view = selection::view(session, Some(&name)).await?;
        let queued = view.queued().map(|request| request.id.clone());
        let requested = view.requested().and_then(Result::ok).map(|request| request.id);
        let under_way = view.restart().filter(|restart| restart.ending.is_none());
        let under_way = under_way.map(|restart| restart.request.id.clone());
        if let Some(id) = requested.or(queued).or(under_way) {
            requests::cancel(session, Some(&name), Some(&id)).await?;
            let until = format!("restart {id} is over");
            wait(session, cluster, &until, move |now| !is_open(now, &id)).await?;
        } else if view.restart().is_some() {
            let is_over = |now: &SearchCluster| ledger(now).is_none_or(|one| one.restart.is_none());
            wait(session, cluster, "the restart under way has ended", is_over).await?;
        } else {
            return Ok(());
        }
    }
}

fn ledger(cluster: &SearchCluster) -> Option<&stayput_restart::Ledger> {
    cluster.status.as_ref().map(|status| &status.ledger)
}

/// True if a request with this id is waiting or under way.
fn is_open(cluster: &SearchCluster, id: &str) -> bool {
    let view = ClusterView::from_objects(cluster, []);
    let is_it = |other: &str| other == id;
    view.requested().is_some_and(|request| request.is_ok_and(|request| is_it(&request.id)))
        || view.queued().is_some_and(|request| is_it(&request.id))
        || view.restart().is_some_and(|restart| is_it(&restart.request.id))
}

/// Waits until the SearchCluster is as wanted, or gone; `until` describes the wanted state for people.
/// Writes to stderr, since stdout may be read by a program.
async fn wait(
    session: &Session,
    cluster: &SearchCluster,
    until: &str,
    is_wanted: impl Fn(&SearchCluster) -> bool,
) -> Result<(), DetachError> {
    tell(&format!("waiting until {until}"));
    let told = RefCell::new(None);
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let condition = |seen: Option<&SearchCluster>| {
        let is_over = seen.is_none_or(&is_wanted);
        let message = seen.and_then(|seen| seen.status.as_ref()?.report.message.clone());
        if !is_over && message.is_some() && told.replace(message.clone()) != message {
            tell(&message.unwrap_or_default());
        }
        is_over
    };
    await_condition(api, &cluster.name_any(), condition).await?;
    Ok(())
}

/// Deletes the SearchCluster and waits until all open changes are undone. Objects that belong to it by
/// owner references, such as certificates that pods mount, stay.
async fn delete(session: &Session, cluster: &SearchCluster) -> Result<(), DetachError> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        preconditions: Some(Preconditions {
            uid: cluster.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let clusters = session.objects::<SearchCluster>();
    apiserver::unless_gone(clusters.delete(&cluster.name_any(), params).await)?;
    let is_free =
        |now: &SearchCluster| !now.finalizers().iter().any(|one| one == annotation::FINALIZER);
    wait(session, cluster, "the reconciler has undone its changes", is_free).await
}

/// Prints a text for people on stderr, beside the result.
fn tell(text: &str) {
    // Where stderr cannot be written, the exit code is all that is left.
    let _ = writeln!(io::stderr(), "{}", plain(text));
}

/// Waits until the SearchCluster is gone.
async fn until_gone(session: &Session, cluster: &SearchCluster) -> Result<(), DetachError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let uid = cluster.metadata.uid.clone().unwrap_or_default();
    await_condition(api, &cluster.name_any(), is_deleted(&uid)).await?;
    Ok(())
}

/// Finalizer of `detach`.
const DETACH: &str = "stayput.dev/detach";

/// Adds the finalizer, unless the SearchCluster is being deleted already: then none can be added.
async fn add_finalizer(session: &Session, cluster: &str) -> Result<(), DetachError> {
    change_finalizers(session, cluster, |finalizers, is_deleting| {
        let is_there = finalizers.iter().any(|one| one == DETACH);
        (!is_there && !is_deleting).then(|| [finalizers, &[DETACH.to_owned()]].concat())
    })
    .await
}

/// Removes the finalizer.
async fn take_finalizer_off(session: &Session, cluster: &str) -> Result<(), DetachError> {
    change_finalizers(session, cluster, |finalizers, _| {
        let others: Vec<String> = finalizers.iter().filter(|one| *one != DETACH).cloned().collect();
        (others.len() < finalizers.len()).then_some(others)
    })
    .await
}

/// Changes the finalizers of the SearchCluster as it is now, if it is there.
async fn change_finalizers(
    session: &Session,
    name: &str,
    wanted: impl Fn(&[String], bool) -> Option<Vec<String>>,
) -> Result<(), DetachError> {
    let mut attempts = Attempts::default();
    loop {
        let all = apiserver::clusters(session).await?;
        let Some(cluster) = all.into_iter().find(|one| one.name_any() == name) else {
            return Ok(());
        };
        let is_deleting = cluster.metadata.deletion_timestamp.is_some();
        let Some(finalizers) = wanted(cluster.finalizers(), is_deleting) else { return Ok(()) };
        let version = cluster.metadata.resource_version.as_deref().unwrap_or_default();
        let patch = Patch(vec![is_at_version(Some(version)), set_finalizers(&finalizers)]);
        if attempts.patch_cluster(session, name, version, patch).await? {
            return Ok(());
        }
    }
}

/// Why a cluster was not detached, or not wholly.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DetachError {
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error("cannot watch the SearchCluster: {}; try again", root_cause(.0))]
    Watch(#[from] kube::runtime::wait::Error),
    #[error(
        "it is not detached after {}: `{status}` shows what is waited for; the same command goes on",
        duration_as_given(*limit)
    )]
    TimedOut { status: String, limit: Span },
}

impl DetachError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Selection(error) => error.exit(),
            Self::Api(error) => error.into(),
            Self::Action(error) => error.exit(),
            Self::Refused(_) => Exit::Failed,
            Self::Watch(_) => Exit::NotReachable,
            Self::TimedOut { .. } => Exit::TimedOut,
        }
    }
}
