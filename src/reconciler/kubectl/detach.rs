//! `detach`: takes a cluster out of our hands. What is owed is undone first, by the reconciler; then
//! nothing of ours is left but the managers in the pods, which go on.
//!
//! * [`may`]: whether it may begin; pure.
//! * [`owed`]: what a person has to undo where no reconciler does it; pure.
//! * [`finalizer`]: keeps the SearchCluster until all is done, so that the command can be repeated.
//! * [`clean`]: takes our annotations off.

mod clean;
mod error;
mod finalizer;
mod may;
mod owed;

#[cfg(test)]
mod tests;

use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt};
use tokio::time::timeout;

use super::actions::{self, ActionReport};
use super::apiserver;
use super::args::DetachArgs;
use super::clock::now;
use super::cluster_view::ClusterView;
use super::json::{ActionOutput, ActionResult};
use super::leader::{lease, why_none};
use super::selection;
use super::session::Session;
use crate::cluster::SearchCluster;
pub(super) use error::DetachError;
use may::may;
use stayput_restart::annotation;

/// Takes the SearchCluster away, and everything of ours on pods and Secrets.
pub(super) async fn detach(
    session: &Session,
    args: &DetachArgs,
) -> Result<ActionReport, DetachError> {
    let cluster = selection::cluster(session, args.cluster.name.as_deref()).await?;
    let view = selection::view(session, Some(&cluster.name_any())).await?;
    let no_reconciler = no_reconciler(session).await;
    // By which the pods are found later.
    apiserver::selector(&cluster)?;
    may(&cluster, &view, no_reconciler.as_deref(), args.cancel)?;
    let ends = no_reconciler.is_none() && args.cancel;
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
        "{}/{} is detached: nothing is owed, and its pods run on\n{said}the managers stay in the pods and \
         work without a reconciler; `kubectl stayput uninject` takes them out of manifests\n",
        view.namespace, view.name
    );
    let output = ActionOutput {
        nodes: view.node_names().collect(),
        cluster: view.name,
        namespace: view.namespace,
        result: ActionResult::Detached,
        id: None,
        strategy: None,
    };
    Ok(ActionReport { page, output })
}

/// All steps in their order, of which `ends` is the end of restarts. What a person should know of them.
async fn carry_out(
    session: &Session,
    cluster: &SearchCluster,
    ends: bool,
) -> Result<String, DetachError> {
    if ends {
        end_restarts(session, cluster).await?;
    }
    finalizer::add(session, &cluster.name_any()).await?;
    delete(session, cluster).await?;
    let pods = apiserver::pods(&session.client, cluster).await?;
    let said = clean::pods(session, cluster, &pods).await?
        + &clean::secrets(session, cluster, &pods).await;
    finalizer::remove(session, &cluster.name_any()).await?;
    until_gone(session, cluster).await?;
    Ok(said)
}

/// Why no reconciler works, if that is so. A Lease that cannot be read says nothing.
async fn no_reconciler(session: &Session) -> Option<String> {
    why_none(lease(session).await.ok()?.as_ref(), now())
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
            actions::cancel(session, Some(&name), Some(&id)).await?;
            wait(session, cluster, move |now| !is_open(now, &id)).await?;
        } else if view.restart().is_some() {
            wait(session, cluster, |now| ledger(now).is_none_or(|one| one.restart.is_none()))
                .await?;
        } else {
            return Ok(());
        }
    }
}

fn ledger(cluster: &SearchCluster) -> Option<&stayput_restart::Ledger> {
    cluster.status.as_ref().map(|status| &status.ledger)
}

/// Whether a request with this id is waiting or under way.
fn is_open(cluster: &SearchCluster, id: &str) -> bool {
    let view = ClusterView::from_objects(cluster, []);
    let is_it = |other: &str| other == id;
    view.requested().is_some_and(|request| request.is_ok_and(|request| is_it(&request.id)))
        || view.queued().is_some_and(|request| is_it(&request.id))
        || view.restart().is_some_and(|restart| is_it(&restart.request.id))
}

/// Waits until the SearchCluster is as wanted, or gone.
async fn wait(
    session: &Session,
    cluster: &SearchCluster,
    is_wanted: impl Fn(&SearchCluster) -> bool,
) -> Result<(), DetachError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let condition = |seen: Option<&SearchCluster>| seen.is_none_or(&is_wanted);
    await_condition(api, &cluster.name_any(), condition).await?;
    Ok(())
}

/// Deletes the SearchCluster and waits until nothing is owed any more. What belongs to it by owner
/// references, such as certificates that pods mount, stays.
async fn delete(session: &Session, cluster: &SearchCluster) -> Result<(), DetachError> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        preconditions: Some(Preconditions {
            uid: cluster.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    apiserver::delete_cluster(session, &cluster.name_any(), &params).await?;
    wait(session, cluster, |now| !now.finalizers().iter().any(|one| one == annotation::FINALIZER))
        .await
}

/// Waits until the SearchCluster is gone.
async fn until_gone(session: &Session, cluster: &SearchCluster) -> Result<(), DetachError> {
    let api: Api<SearchCluster> = Api::namespaced(session.client.clone(), &session.namespace);
    let uid = cluster.metadata.uid.clone().unwrap_or_default();
    await_condition(api, &cluster.name_any(), is_deleted(&uid)).await?;
    Ok(())
}
