//! Restarts that the reconciler requests itself for changed pod templates.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::flow::debts::starts::is_waited_for;
use crate::flow::labels::{relabel, until_ahead};
use crate::flow::member::update::frozen_update::{
    BY_UPDATE, planned_update, why_left_out, why_not_allowed,
};
use crate::flow::observed::not_outside_windows;
use crate::flow::requests::configs::{before, content, follow};
use crate::flow::requests::drift::bring_to_template;
use crate::flow::requests::{open_own, short_id};
use crate::ledger::OwnKind;
use crate::needs_coordinated::template_needs_coordinated;
use crate::{
    Blocker, Code, Context, Known, Ledger, MAX_MEMBERS, Pod, PodUpdate, Policy, Reason, Snapshot,
    Strategy, UpdateStep,
};

/// Patches pods whose engine can go on, and requests a restart of the others, once for each set of
/// wanted templates. Says why a pod stays as it is.
pub(crate) fn request_for_update(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let cluster = &context.snapshot.cluster;
    if context.policy.update.is_empty() || !cluster.has_status || !cluster.overlaps.is_empty() {
        return changes;
    }
    if ledger.restart.is_none()
        && let Some(change) = follow(context, ledger, OwnKind::Templates)
    {
        return Changes::of_ledger(change);
    }
    let mut owed = ledger.debts.start.iter();
    // A request of a person that waits in the queue comes first.
    let is_idle = ledger.restart.is_none()
        && ledger.queued.is_none()
        && !owed.any(|debt| is_waited_for(context, debt));
    let mut wanted = wanted_updates(context, ledger, is_idle, &mut changes);
    if wanted.is_empty() || cluster.paused {
        return changes;
    }
    let id = update_id(context);
    wanted.retain(|(pod, update)| {
        let Some(before) = before(OwnKind::Templates, ledger, &id, pod) else { return true };
        // With the same template, the content of Secrets and ConfigMaps is new.
        let (changed, it) = if pod.live.as_ref().is_some_and(|live| live.revision == update.to) {
            ("the new content of its Secrets and ConfigMaps", "it")
        } else {
            ("its new pod template", "the template")
        };
        let message = format!(
            "{changed} {before}: change {it}, or ask for a restart to try it again ({})",
            update.fields()
        );
        changes.wait(&pod.uid, Code::UpdateTried, message);
        false
    });
    if wanted.is_empty() {
        return changes;
    }
    wanted.retain(|(pod, update)| {
        let blocker = match template_needs_coordinated(context, ledger, pod, update) {
            Ok(None) => return true,
            Ok(Some(change)) => {
                Blocker { code: Code::NeedsCoordinated, message: change.by_template(pod) }
            }
            Err(blocker) => blocker,
        };
        changes.block(&pod.uid, blocker);
        false
    });
    if wanted.is_empty() {
        return changes;
    }
    // The other nodes get a restart of their own after this one.
    wanted.truncate(MAX_MEMBERS);
    let pods: Vec<&Pod> = wanted.into_iter().map(|(pod, _)| pod).collect();
    match not_outside_windows(context) {
        Ok(()) => {
            let how = (Strategy::Rolling, BY_UPDATE.to_owned());
            changes.merge(open_own(context, ledger, OwnKind::Templates, id, how, &pods));
        }
        // A request of ours would block those of people.
        Err(blocker) => changes.block_each(pods, &blocker),
    }
    changes
}

/// Patches pods whose engine can go on, says why a pod stays as it is, and returns the pods that need a restart
/// now. `is_idle`: a restart may be requested.
fn wanted_updates<'a>(
    context: &Context<'a>,
    ledger: &Ledger,
    is_idle: bool,
    changes: &mut Changes,
) -> Vec<(&'a Pod, &'a PodUpdate)> {
    let mut wanted = Vec::new();
    for pod in context.index.pods().filter(|pod| is_left_alone(ledger, pod)) {
        let update = match &pod.update {
            Err(unknown) => {
                changes.wait(&pod.uid, Code::UpdateUnknown, unknown.message.clone());
                continue;
            }
            Ok(None) => continue,
            Ok(Some(update)) => update,
        };
        let live = pod.live.as_ref();
        if let (Some(not_started), Err(_)) = (&pod.not_started, &pod.manager) {
            changes.merge(bring_to_template(context, pod, not_started, update));
            continue;
        }
        if let Some(why) = why_not_allowed(context, pod, update) {
            changes.wait(&pod.uid, Code::UpdateNotAllowed, why);
        } else if update.step == UpdateStep::Relabel && !context.snapshot.cluster.paused {
            changes.merge(relabel_at_once(pod, update));
        } else if let Some(Err(blocker)) = live.map(|live| until_ahead(pod, live, update)) {
            changes.block(&pod.uid, blocker);
        } else if is_idle
            && why_left_out(context, ledger, pod).is_none()
            && planned_update(context.policy, Strategy::Rolling, pod).is_some()
        {
            wanted.push((pod, update));
        }
    }
    wanted
}

/// Pods whose template is carried out by a restart that was not requested yet, because something comes first
/// or it is not the time. Updates that wait for a person's decision are not among them, nor are nodes that
/// leave.
fn updates_to_come<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Pod> {
    let ledger = &context.snapshot.ledger;
    let id = update_id(context);
    context.snapshot.pods.iter().filter(move |pod| {
        let planned = planned_update(context.policy, Strategy::Rolling, pod);
        pod.leaving.is_none()
            && planned.is_some_and(|update| {
                !matches!(template_needs_coordinated(context, ledger, pod, update), Ok(Some(_)))
            })
            && why_left_out(context, ledger, pod).is_none()
            && before(OwnKind::Templates, ledger, &id, pod).is_none()
    })
}

/// True if neither a restart nor a debt concerns this pod, and its node does not leave.
pub(crate) fn is_left_alone(ledger: &Ledger, pod: &Pod) -> bool {
    pod.leaving.is_none() && ledger.is_released(&pod.uid)
}

/// The patch of labels and annotations alone, and its event, for a pod whose engine goes on.
fn relabel_at_once(pod: &Pod, update: &PodUpdate) -> Changes {
    let mut changes = Changes::default();
    let Some(live) = &pod.live else { return changes };
    let Some(action) = relabel(pod, live, update) else { return changes };
    if action.gives_revision() {
        let message = format!(
            "{} gets the changes of its template while its engine runs: {}",
            pod.name,
            update.fields()
        );
        changes.event(Some(&pod.uid), Reason::PodRelabelled, message);
    }
    changes.actions.push(action);
    changes
}

/// Id of the change to the templates that all pods should be made from, and to the content that their
/// containers are to read. The id is the same before and after some pods are updated.
pub(crate) fn update_id(context: &Context<'_>) -> String {
    let revision = |pod: &'_ Pod| match &pod.update {
        Ok(Some(update)) => Some(update.to.clone()),
        Ok(None) => pod.live.as_ref().map(|live| live.revision.clone()),
        Err(_) => None,
    };
    let content = |pod: &'_ Pod| content(pod.update.as_ref().ok()?.as_ref()?);
    let pods = || context.index.pods();
    let mut wanted: Vec<String> =
        pods().filter_map(revision).chain(pods().filter_map(content)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let contents = wanted.iter().map(|revision| (revision.as_str(), &[][..])).collect();
    short_id(OwnKind::Templates, contents)
}

/// Number of nodes that are still to be restarted for a changed config or template, at once or after
/// earlier work. Nodes that leave do not count, nor do templates that wait for a person: the step is not
/// allowed, or was given up. Unknown if it is not known of a pod whether its template has changed.
pub fn changes_to_come(snapshot: &Snapshot, policy: &Policy) -> Known<u32> {
    let pods = || snapshot.pods.iter().filter(|pod| pod.leaving.is_none());
    let mut pending: BTreeSet<&str> =
        pods().filter(|pod| pod.drifts()).map(|pod| pod.uid.as_str()).collect();
    if !policy.update.is_empty() {
        if let Some(unknown) = pods().find_map(|pod| pod.update.as_ref().err()) {
            return Err(unknown.clone());
        }
        let context = Context::new(snapshot, policy);
        pending.extend(updates_to_come(&context).map(|pod| pod.uid.as_str()));
    }
    Ok(u32::try_from(pending.len()).unwrap_or(u32::MAX))
}
