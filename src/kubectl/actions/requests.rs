//! `restart`, `cancel`, `pause` and `resume`.

use stayput_kube_access::names::random_id;
use stayput_restart::{Code, Request, Strategy, annotation};

use crate::actions::{
    ActionError, ActionReport, ActionResult, Attempts, confirm, may_be_outage, outage,
    request_patch, set_annotation, set_paused,
};
use crate::args::RestartArgs;
use crate::leader::Reconciler;
use crate::options::into_quoted_commands;
use crate::session::Session;
use crate::snapshot::DatedForecast;
use crate::view::ClusterView;
use crate::{selection, snapshot, text};

/// Requests a restart, unless one with the same id was requested before.
pub(crate) async fn restart(
    session: &Session,
    args: &RestartArgs,
) -> Result<ActionReport, ActionError> {
    let id = random_id().map_err(|_| ActionError::NoRandomId)?;
    let request = args.request(|| id, session.user.clone());
    let text = serde_json::to_string(&request).map_err(ActionError::Encoding)?;
    // The reconciler would refuse an invalid request, but only in its status.
    Request::parse(&text)
        .map_err(|error| ActionError::InvalidRequest { message: error.to_string() })?;
    let mut confirmed = args.yes || args.dry_run || !may_be_outage(&request);
    let mut attempts = Attempts::default();
    loop {
        let view = selection::view(session, args.cluster.name.as_deref()).await?;
        if is_already_requested(&view, &request.id) {
            let page =
                format!("restart {} was requested before; nothing was changed\n", request.id);
            return Ok(restart_report(&view, &request, ActionResult::AlreadyRequested, page));
        }
        check(&view, &request)?;
        if args.dry_run {
            return Ok(dry_run(session, &view, args, &request).await);
        }
        if !confirmed {
            confirm(outage(&view, &request))?;
            confirmed = true;
        }
        let patch = request_patch(&view, &text, view.reconciler == Reconciler::Works);
        let (name, version) = (&view.name, &view.resource_version);
        if attempts.patch_cluster(session, name, version, patch).await? {
            let page = requested(&view, &request);
            return Ok(restart_report(&view, &request, ActionResult::Requested, page));
        }
    }
}

fn is_already_requested(view: &ClusterView, id: &str) -> bool {
    let requested = view.requested().and_then(Result::ok);
    requested.is_some_and(|request| request.id == id) || view.has_handled(id)
}

/// The dry run of the request; without a snapshot the order of the nodes, and the reason for that.
async fn dry_run(
    session: &Session,
    view: &ClusterView,
    args: &RestartArgs,
    request: &Request,
) -> ActionReport {
    let saved = snapshot::snapshot(session, args.reconciler.address.as_deref(), view).await;
    let forecast = saved
        .map(|saved| DatedForecast::new(&saved, Some(request)))
        .map_err(|error| into_quoted_commands(&error.to_string(), &view.options));
    let is_refused = forecast.as_ref().is_ok_and(|dated| dated.forecast.is_refused);
    let result = if is_refused { ActionResult::WouldBeRefused } else { ActionResult::DryRun };
    let page = text::dry_run(view, request, forecast.as_ref());
    let mut report = restart_report(view, request, result, page);
    match forecast {
        Ok(dated) => report.output.forecast = Some(Box::new(dated)),
        Err(why) => report.output.no_forecast = Some(why),
    }
    report
}

fn restart_report(
    view: &ClusterView,
    request: &Request,
    result: ActionResult,
    page: String,
) -> ActionReport {
    let mut report = ActionReport::new(view, result, page);
    report.output.id = Some(request.id.clone());
    report.output.strategy = Some(request.strategy);
    let target = &request.target.nodes;
    let order = view.restart_order().into_iter().map(|pod| pod.node.clone());
    report.output.nodes = order.filter(|node| target.is_empty() || target.contains(node)).collect();
    report
}

/// Refuses a request that the reconciler would refuse or never see.
fn check(view: &ClusterView, request: &Request) -> Result<(), ActionError> {
    let cluster = view.name.clone();
    if view.deleting {
        return Err(ActionError::Deleting(cluster));
    }
    if view.status.is_none() {
        // The reconciler ignores a request that is older than the status: it may be an old one that
        // was restored from a backup.
        return Err(ActionError::NotProcessed);
    }
    if let Some(Ok(other)) = view.requested() {
        let cancel = view.cancel_command(&other.id);
        return Err(ActionError::OtherRequested { id: other.id, cancel });
    }
    let known: Vec<String> = view.node_names().collect();
    if let Some(node) = request.target.nodes.iter().find(|node| !known.contains(node)) {
        return Err(ActionError::UnknownNode { cluster, node: node.clone(), known });
    }
    let is_kept =
        |node: &&String| view.pod_of_node(node).is_some_and(|pod| view.is_kept_stopped(pod));
    if let Some(node) = request.target.nodes.iter().find(is_kept) {
        let start = view.command_for("start", std::slice::from_ref(node));
        return Err(ActionError::NodeKeptStopped { node: node.clone(), start });
    }
    if view.restart_order().is_empty() {
        return Err(ActionError::NoNodes { cluster, status: view.command("status") });
    }
    Ok(())
}

fn requested(view: &ClusterView, request: &Request) -> String {
    let (strategy, id) = (request.strategy.as_str(), &request.id);
    let mut page = format!("{strategy} restart {id} of {} requested\n", view.name);
    if let Some(restart) = view.restart() {
        let id = &restart.request.id;
        let takes_its_place =
            request.strategy == Strategy::Coordinated && view.is_blocked_by(Code::Stranded);
        page += &if takes_its_place {
            format!(
                "it takes the place of restart {id}, which can neither continue nor roll back, if \
                 it includes all nodes of that restart\n"
            )
        } else {
            format!("it begins when restart {id} has ended\n")
        };
    }
    if let Some(queued) = view.queued() {
        page += &format!("it replaces restart {}, which was queued and will not run\n", queued.id);
    }
    if view.paused {
        page += "no node is stopped while spec.paused is true\n";
    }
    if !view.faults.is_empty() {
        page +=
            &format!("no node is stopped while the spec is invalid: {}\n", view.faults.join("; "));
    }
    page
}

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
        let (name, version) = (&view.name, &view.resource_version);
        let patch = set_annotation(version, view.has_annotations, key, value);
        if attempts.patch_cluster(session, name, version, patch).await? {
            return Ok(cancel_report(&view, cancellation));
        }
    }
}

fn cancel_report(view: &ClusterView, cancellation: Cancellation) -> ActionReport {
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
            let hint = next_restart(view).map(|hint| hint + "\n").unwrap_or_default();
            (ActionResult::CancelRequested, Some(id), page + &hint)
        }
    };
    let mut report = ActionReport::new(view, result, page);
    report.output.id = id;
    report
}

/// A hint about the next restart, which begins when the one under way has ended, and how to cancel it.
fn next_restart(view: &ClusterView) -> Option<String> {
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
            let (outcome, next) = (ending.outcome.as_str(), next_restart(view));
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

/// Lets no further node be stopped.
pub(crate) async fn pause(
    session: &Session,
    cluster: Option<&str>,
) -> Result<ActionReport, ActionError> {
    set_paused_to(session, cluster, true).await
}

/// Lets nodes be stopped again.
pub(crate) async fn resume(
    session: &Session,
    cluster: Option<&str>,
) -> Result<ActionReport, ActionError> {
    set_paused_to(session, cluster, false).await
}

async fn set_paused_to(
    session: &Session,
    cluster: Option<&str>,
    paused: bool,
) -> Result<ActionReport, ActionError> {
    let mut attempts = Attempts::default();
    loop {
        let view = selection::view(session, cluster).await?;
        if view.paused == paused {
            return Ok(unchanged(&view));
        }
        let (name, version) = (&view.name, &view.resource_version);
        if attempts.patch_cluster(session, name, version, set_paused(version, paused)).await? {
            return Ok(if paused { was_paused(&view) } else { was_resumed(&view) });
        }
    }
}

fn unchanged(view: &ClusterView) -> ActionReport {
    let state = if view.paused { "is paused already" } else { "is not paused" };
    let page = format!("{} {state}; nothing was changed\n", view.name);
    ActionReport::new(view, ActionResult::Unchanged, page)
}

fn was_paused(view: &ClusterView) -> ActionReport {
    let name = &view.name;
    let mut page = format!(
        "{name} is paused: no further node is stopped until `{}`; nodes that are stopped already are \
         started\n",
        view.command("resume")
    );
    if let Some(restart) = view.restart() {
        let id = &restart.request.id;
        page += &format!(
            "restart {id} stays and goes on after that; to end it: `{}`\n",
            view.command("cancel")
        );
    }
    ActionReport::new(view, ActionResult::Paused, page)
}

fn was_resumed(view: &ClusterView) -> ActionReport {
    let next = match view.restart() {
        Some(restart) => format!("restart {} goes on", restart.request.id),
        None => "nodes may be stopped again".to_owned(),
    };
    let page = format!("{} is paused no longer: {next}\n", view.name);
    ActionReport::new(view, ActionResult::Resumed, page)
}
