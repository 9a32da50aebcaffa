//! `pause` and `resume`: no node is stopped while a person looks at the cluster.

use crate::actions::attempts::Attempts;
use crate::actions::error::ActionError;
use crate::actions::patch::set_paused;
use crate::actions::report;
use crate::actions::report::{ActionReport, ActionResult};
use crate::apiserver::patch_cluster;
use crate::selection;
use crate::session::Session;
use crate::view::ClusterView;

/// Lets no further node be stopped.
pub(crate) async fn pause(
    session: &Session,
    cluster: Option<&str>,
) -> Result<ActionReport, ActionError> {
    set(session, cluster, true).await
}

/// Lets nodes be stopped again.
pub(crate) async fn resume(
    session: &Session,
    cluster: Option<&str>,
) -> Result<ActionReport, ActionError> {
    set(session, cluster, false).await
}

async fn set(
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
        attempts.next("SearchCluster", &view.name, &view.resource_version)?;
        let patch = set_paused(&view.resource_version, paused);
        match patch_cluster(session, &view.name, patch).await {
            Ok(()) if paused => return Ok(was_paused(&view)),
            Ok(()) => return Ok(was_resumed(&view)),
            Err(error) => attempts.refused(&view.resource_version, error)?,
        }
    }
}

fn unchanged(view: &ClusterView) -> ActionReport {
    let state = if view.paused { "is paused already" } else { "is not paused" };
    let page = format!("{} {state}; nothing was changed\n", view.name);
    ActionReport { page, output: report::output(view, ActionResult::Unchanged) }
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
    ActionReport { page, output: report::output(view, ActionResult::Paused) }
}

fn was_resumed(view: &ClusterView) -> ActionReport {
    let next = match view.restart() {
        Some(restart) => format!("restart {} goes on", restart.request.id),
        None => "nodes may be stopped again".to_owned(),
    };
    let page = format!("{} is paused no longer: {next}\n", view.name);
    ActionReport { page, output: report::output(view, ActionResult::Resumed) }
}
