//! `cancel`: no further stops.

use super::{Told, annotate, contended};
use crate::kubectl::apiserver::{Unpatched, patch_cluster};
use crate::kubectl::connect::Session;
use crate::kubectl::failure::Failure;
use crate::kubectl::find;
use crate::kubectl::output::{ActOutput, Done};
use crate::kubectl::view::View;
use stayput_restart::annotation;

/// Withdraws a request that nobody has taken up, or asks that a restart be cancelled.
pub(in crate::kubectl) async fn cancel(
    session: &Session,
    cluster: Option<&str>,
    id: Option<&str>,
) -> Result<Told, Failure> {
    for _ in 0..super::TRIES {
        let view = find::view(session, cluster).await?;
        let (id, done) = choose(&view, id).map_err(Failure::Failed)?;
        let annotation = match done {
            Done::Withdrawn => (annotation::REQUEST, None),
            _ => (annotation::CANCEL, Some(id.as_str())),
        };
        let patch = annotate(&view.version, view.is_annotated, annotation.0, annotation.1);
        match patch_cluster(session, &view.name, patch).await {
            Ok(()) => {
                let mut output = ActOutput::new(&view, done);
                let page = match done {
                    Done::Withdrawn => format!("request {id} withdrawn before it was taken up\n"),
                    _ => format!(
                        "cancel of restart {id} asked for: no further node is stopped, nodes already \
                         stopped are finished\n"
                    ),
                };
                output.id = Some(id);
                return Ok(Told { page, output });
            }
            Err(Unpatched::Changed) => {}
            Err(Unpatched::Failure(failure)) => return Err(failure),
        }
    }
    Err(contended("the SearchCluster"))
}

/// The restart that is meant, and what has to be done about it.
fn choose(view: &View, id: Option<&str>) -> Result<(String, Done), String> {
    let meant = |other: &str| id.is_none_or(|id| id == other);
    if let Some(restart) = view.restart().filter(|restart| meant(&restart.request.id)) {
        let id = restart.request.id.clone();
        if let Some(ending) = &restart.ending {
            let outcome = ending.outcome.as_str();
            return Err(format!(
                "restart {id} stops no further node already; it ends as {outcome}"
            ));
        }
        if let Some(why) = restart.why_not_cancellable() {
            return Err(format!("restart {id} cannot be cancelled any more: {why}"));
        }
        return Ok((id, Done::CancelRequested));
    }
    if let Some(queued) = view.queued().filter(|queued| meant(&queued.id)) {
        return Ok((queued.id.clone(), Done::CancelRequested));
    }
    match view.requested() {
        Some(Ok(request)) if meant(&request.id) => return Ok((request.id, Done::Withdrawn)),
        // What cannot be read has no id to name it by.
        Some(Err(_)) if id.is_none() => return Ok(("(unreadable)".into(), Done::Withdrawn)),
        Some(_) | None => {}
    }
    let over = |id: &str| view.history().iter().rfind(|entry| entry.id == id);
    match id {
        Some(id) => match over(id) {
            Some(entry) => Err(format!("restart {id} is over: {}", entry.outcome.as_str())),
            None => {
                Err(format!("{} knows no restart {id}: see `kubectl stayput status`", view.name))
            }
        },
        None => Err(format!("{} has no restart under way, and none is asked for", view.name)),
    }
}
