//! `cancel`: no further node is stopped.

use super::attempts::Attempts;
use super::error::ActionError;
use super::patch::set_annotation;
use super::report::{self, ActionReport};
use crate::kubectl::apiserver::patch_cluster;
use crate::kubectl::cluster_view::ClusterView;
use crate::kubectl::json::ActionResult;
use crate::kubectl::selection;
use crate::kubectl::session::Session;
use stayput_restart::annotation;

/// What there is to cancel.
enum Cancellation {
    /// A request that is not accepted yet: it is removed. One that cannot be read has no id.
    Withdraw { id: Option<String> },
    /// A restart that is under way or queued: the reconciler is asked to cancel it.
    Request { id: String },
}

impl Cancellation {
    /// An error if the annotation asks for the end of another restart: it has room for one.
    fn overwrites_none(&self, view: &ClusterView) -> Result<(), ActionError> {
        let (Self::Request { id }, Some(other)) = (self, view.annotations.get(annotation::CANCEL))
        else {
            return Ok(());
        };
        match choose(view, Some(other)) {
            Ok(Self::Request { id: other }) if other != *id => {
                Err(ActionError::OtherCancelled { id: other })
            }
            // What has ended, or is ending, needs its annotation no more.
            Ok(Self::Request { .. } | Self::Withdraw { .. }) | Err(_) => Ok(()),
        }
    }
}

/// Withdraws a request that is not accepted yet, or requests that a restart be cancelled.
pub(in crate::kubectl) async fn cancel(
    session: &Session,
    cluster: Option<&str>,
    id: Option<&str>,
) -> Result<ActionReport, ActionError> {
    let mut attempts = Attempts::default();
    loop {
        let view = selection::view(session, cluster).await?;
        let cancellation = choose(&view, id)?;
        cancellation.overwrites_none(&view)?;
        let (key, value) = match &cancellation {
            Cancellation::Withdraw { .. } => (annotation::REQUEST, None),
            Cancellation::Request { id } => (annotation::CANCEL, Some(id.as_str())),
        };
        attempts.next("SearchCluster", &view.name, &view.resource_version)?;
        let patch = set_annotation(&view.resource_version, view.has_annotations, key, value);
        match patch_cluster(session, &view.name, patch).await {
            Ok(()) => return Ok(report(&view, cancellation)),
            Err(error) => attempts.refused(&view.resource_version, error)?,
        }
    }
}

fn report(view: &ClusterView, cancellation: Cancellation) -> ActionReport {
    let (result, id, page) = match cancellation {
        Cancellation::Withdraw { id } => {
            let shown = id.as_deref().unwrap_or("(unreadable)");
            let page = format!("request {shown} withdrawn before it was accepted\n");
            (ActionResult::Withdrawn, id, page)
        }
        Cancellation::Request { id } => {
            let page = format!(
                "cancellation of restart {id} requested: no further node is stopped, nodes already \
                 stopped are started\n"
            );
            (ActionResult::CancelRequested, Some(id), page)
        }
    };
    let mut output = report::output(view, result);
    output.id = id;
    ActionReport { page, output }
}

fn choose(view: &ClusterView, id: Option<&str>) -> Result<Cancellation, ActionError> {
    let is_meant = |other: &str| id.is_none_or(|id| id == other);
    if let Some(restart) = view.restart().filter(|restart| is_meant(&restart.request.id)) {
        let id = restart.request.id.clone();
        if let Some(ending) = &restart.ending {
            return Err(ActionError::AlreadyEnding { id, outcome: ending.outcome.as_str() });
        }
        if let Some(reason) = restart.why_not_cancellable() {
            return Err(ActionError::NotCancellable { id, reason: reason.to_owned() });
        }
        return Ok(Cancellation::Request { id });
    }
    if let Some(queued) = view.queued().filter(|queued| is_meant(&queued.id)) {
        return Ok(Cancellation::Request { id: queued.id.clone() });
    }
    match view.requested() {
        Some(Ok(request)) if is_meant(&request.id) => {
            return Ok(Cancellation::Withdraw { id: Some(request.id) });
        }
        Some(Err(_)) if id.is_none() => return Ok(Cancellation::Withdraw { id: None }),
        Some(_) | None => {}
    }
    let cluster = view.name.clone();
    let Some(id) = id.map(str::to_owned) else { return Err(ActionError::NoRestart(cluster)) };
    match view.history().iter().rfind(|entry| entry.id == id) {
        Some(entry) => Err(ActionError::AlreadyEnded { id, outcome: entry.outcome.as_str() }),
        None => Err(ActionError::UnknownRestart { cluster, id, status: view.command("status") }),
    }
}
