//! `restart`: writes a request.

use stayput_kube_access::random_id::random_id;
use stayput_restart::{Code, Request, Strategy};

use crate::actions::attempts::Attempts;
use crate::actions::confirm::{confirm, may_be_outage, outage};
use crate::actions::error::ActionError;
use crate::actions::report::{ActionReport, ActionResult};
use crate::actions::{patch, report};
use crate::apiserver::patch_cluster;
use crate::args::RestartArgs;
use crate::json::ForecastOutput;
use crate::leader::Reconciler;
use crate::options::into_quoted_commands;
use crate::session::Session;
use crate::view::ClusterView;
use crate::{forecast, selection, text};

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
            return Ok(report(&view, &request, ActionResult::AlreadyRequested, page));
        }
        check(&view, &request)?;
        if args.dry_run {
            return Ok(dry_run(session, &view, args, &request).await);
        }
        if !confirmed {
            confirm(outage(&view, &request))?;
            confirmed = true;
        }
        attempts.next("SearchCluster", &view.name, &view.resource_version)?;
        let patch = patch::request(&view, &text, view.reconciler == Reconciler::Works);
        match patch_cluster(session, &view.name, patch).await {
            Ok(()) => {
                let page = requested(&view, &request);
                return Ok(report(&view, &request, ActionResult::Requested, page));
            }
            Err(error) => attempts.refused(&view.resource_version, error)?,
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
    let forecast = forecast::of_request(session, view, &args.reconciler, request).await;
    let forecast =
        forecast.map_err(|error| into_quoted_commands(&error.to_string(), &view.options));
    let is_refused = forecast.as_ref().is_ok_and(|dated| dated.forecast.is_refused);
    let result = if is_refused { ActionResult::WouldBeRefused } else { ActionResult::DryRun };
    let page = text::dry_run(view, request, forecast.as_ref());
    let mut report = report(view, request, result, page);
    match forecast {
        Ok(dated) => report.output.forecast = Some(Box::new(ForecastOutput::new(&dated))),
        Err(why) => report.output.no_forecast = Some(why),
    }
    report
}

fn report(
    view: &ClusterView,
    request: &Request,
    result: ActionResult,
    page: String,
) -> ActionReport {
    let mut output = report::output(view, result);
    output.id = Some(request.id.clone());
    output.strategy = Some(request.strategy);
    let target = &request.target.nodes;
    let order = view.restart_order().into_iter().map(|pod| pod.node.clone());
    output.nodes = order.filter(|node| target.is_empty() || target.contains(node)).collect();
    ActionReport { page, output }
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
