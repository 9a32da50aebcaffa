//! `cancel`: no further node is stopped.

use stayput_restart::annotation;

use crate::actions::attempts::Attempts;
use crate::actions::error::ActionError;
use crate::actions::patch::set_annotation;
use crate::actions::report;
use crate::actions::report::{ActionReport, ActionResult};
use crate::apiserver::patch_cluster;
use crate::selection;
use crate::session::Session;
use crate::view::ClusterView;

/// The restart to cancel.
enum Cancellation {
    /// A request that is not accepted yet: it is removed. One that cannot be read has no id.
    Withdraw { id: Option<String> },
    /// A restart that waits for another to end: the reconciler is asked not to begin it.
    Dequeue { id: String },
    /// The restart under way: the reconciler is asked to end it.
    End { id: String },
}

impl Cancellation {
    /// The id for the reconciler, if the cancellation needs it.
    fn asks_for(&self) -> Option<&str> {
        match self {
            Self::Withdraw { .. } => None,
            Self::Dequeue { id } | Self::End { id } => Some(id),
        }
    }

    /// An error if the annotation has the id of another restart that is not cancelled yet.
    fn overwrites_none(&self, view: &ClusterView) -> Result<(), ActionError> {
        let (Some(id), Some(other)) = (self.asks_for(), view.annotations.get(annotation::CANCEL))
        else {
            return Ok(());
        };
        let is_open = choose(view, Some(other)).is_ok_and(|other| other.asks_for().is_some());
        if is_open && other != id {
            Err(ActionError::OtherCancelled { id: other.clone() })
        } else {
            Ok(())
        }
    }
}

/// Withdraws a request that is not accepted yet, or requests that a restart be cancelled.
pub(crate) async fn cancel(
    session: &Session,
    cluster: Option<&str>,
    id: Option<&str>,
) -> Result<ActionReport, ActionError> {
    let mut attempts = Attempts::default();
    loop {
        let view = selection::view(session, cluster).await?;
        let cancellation = choose(&view, id)?;
        cancellation.overwrites_none(&view)?;
        let value = cancellation.asks_for();
        let key = if value.is_some() { annotation::CANCEL } else { annotation::REQUEST };
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
        Cancellation::Dequeue { id } => {
            let page = format!("cancellation of restart {id} requested: it will not begin\n");
            (ActionResult::CancelRequested, Some(id), page)
        }
        Cancellation::End { id } => {
            let page = format!(
                "cancellation of restart {id} requested: no further node is stopped, nodes already \
                 stopped are started\n"
            );
            let next = next(view).map(|next| next + "\n").unwrap_or_default();
            (ActionResult::CancelRequested, Some(id), page + &next)
        }
    };
    let mut output = report::output(view, result);
    output.id = id;
    ActionReport { page, output }
}

/// A hint about the next restart, which begins when the one under way has ended, and how to cancel it.
fn next(view: &ClusterView) -> Option<String> {
    // A request takes the place of what is queued.
    let requested = view.requested().and_then(Result::ok);
    let id = requested.as_ref().or_else(|| view.queued()).map(|request| &request.id)?;
    Some(format!("restart {id} begins then; to cancel it: `{}`", view.cancel_command(id)))
}

fn choose(view: &ClusterView, id: Option<&str>) -> Result<Cancellation, ActionError> {
    let is_meant = |other: &str| id.is_none_or(|id| id == other);
    if let Some(restart) = view.restart().filter(|restart| is_meant(&restart.request.id)) {
        let id = restart.request.id.clone();
        if let Some(ending) = &restart.ending {
            let (outcome, next) = (ending.outcome.as_str(), next(view));
            return Err(ActionError::AlreadyEnding { id, outcome, next });
        }
        if let Some(reason) = restart.why_not_cancellable() {
            return Err(ActionError::NotCancellable { id, reason: reason.to_owned() });
        }
        return Ok(Cancellation::End { id });
    }
    if let Some(queued) = view.queued().filter(|queued| is_meant(&queued.id)) {
        return Ok(Cancellation::Dequeue { id: queued.id.clone() });
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
