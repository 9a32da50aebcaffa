//! Restarts that the reconciler requests itself for changed configs: of nodes that run on another config
//! than their sources have. A pod that has never started gets its new template at once: there is no engine
//! to stop.

use crate::changes::Changes;
use crate::flow::labels::relabel;
use crate::flow::member::update::frozen_update::{due_images, due_resources, why_not_allowed};
use crate::flow::observed::{is_to_be_stopped, not_outside_windows};
use crate::flow::requests::configs::{before, follow, remember_all};
use crate::flow::requests::{open_own, short_id, try_of};
use crate::index::Index;
use crate::ledger::{LedgerChange, OwnKind};
use crate::needs_coordinated::needs_coordinated;
use crate::snapshot::namespace_and_name;
use crate::{
    Action, Blocker, Code, Context, Ledger, LivePod, MAX_MEMBERS, NotStarted, OnConfigChange,
    Operator, Pod, PodUpdate, Reason, Restart, Sources, Strategy, UpdateStep,
};
use stayput_api::State;

/// Beginning of `by` in a request for a changed config; the setting that needs all nodes at once may follow.
const BY_CONFIG: &str = "spec.restart.onConfigChange";

/// True if the restart was requested for a changed config.
pub(crate) fn is_for_configs(restart: &Restart) -> bool {
    restart.request.by.as_ref().is_some_and(|by| by.starts_with(BY_CONFIG))
}

/// Requests a restart of the drifting nodes if the policy says so; otherwise only reports them.
pub(crate) fn request_for_drift(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    // A request of a person that waits in the queue comes first.
    if ledger.restart.is_some() || ledger.queued.is_some() || !context.snapshot.cluster.has_status {
        return changes;
    }
    if let Some(change) = follow(context, ledger, OwnKind::Configs) {
        return Changes::of_ledger(change);
    }
    let mut drifting: Vec<&Pod> = context
        .index
        .pods()
        .filter(|pod| is_pending(pod) && !is_to_be_stopped(context, pod))
        .collect();
    if context.policy.on_config_change != OnConfigChange::None
        && let Some(message) = not_followed(context)
    {
        changes.wait_all(Code::SourcesUnknown, message);
    }
    if drifting.is_empty() {
        return changes;
    }
    let (strategy, by) = match how_requested(context, ledger, &drifting) {
        Ok(how) => how,
        Err(blocker) => {
            changes.block_each(drifting, &blocker);
            return changes;
        }
    };
    if context.snapshot.cluster.paused {
        return changes;
    }
    // A request of ours would block those of people.
    if let Err(blocker) = not_outside_windows(context) {
        changes.block_each(drifting, &blocker);
        return changes;
    }
    let id = change_id(context);
    drifting.retain(|pod| {
        let Some(before) = before(OwnKind::Configs, ledger, &id, pod) else { return true };
        let message = format!("its change {before}: ask for a restart");
        changes.wait(&pod.uid, Code::PendingRestart, message);
        false
    });
    if drifting.is_empty() {
        return changes;
    }
    if strategy == Strategy::Rolling {
        // The other nodes get a restart of their own after this one.
        drifting.truncate(MAX_MEMBERS);
    }
    let how = (strategy, by);
    changes.merge(open_own(context, ledger, OwnKind::Configs, id, how, &drifting));
    changes
}

/// The strategy of the request for drifting nodes and its `by`, or why a person has to request it.
fn how_requested(
    context: &Context<'_>,
    ledger: &Ledger,
    drifting: &[&Pod],
) -> Result<(Strategy, String), Blocker> {
    let changed = "its config has changed since it was started";
    let message = if let Some(operator) = Operator::replacing(context.snapshot) {
        format!("{changed}: {}", operator.replaces(&context.snapshot.cluster))
    } else if context.policy.on_config_change != OnConfigChange::None {
        return how(context, ledger, drifting);
    } else if let Ok(Some(change)) = needs_coordinated(context, ledger, drifting) {
        format!("{changed}: {}; ask for a coordinated restart", change.sentence())
    } else {
        format!("{changed}; ask for a restart")
    };
    Err(Blocker { code: Code::PendingRestart, message })
}

/// Remembers the config that all nodes are on at the end of a restart for another one, which was reverted
/// meanwhile. That other one is a change again when it comes back.
pub(crate) fn remember_reverted(
    context: &Context<'_>,
    ledger: &Ledger,
    restart: &Restart,
) -> Vec<LedgerChange> {
    let id = change_id(context);
    let is_reverted = is_for_configs(restart)
        && try_of(&id, &restart.request.id).is_none()
        && context.index.pods().all(runs_on_wanted);
    if is_reverted {
        remember_all(context, ledger, OwnKind::Configs, id).into()
    } else {
        Vec::new()
    }
}

/// Reason why a restart for a changed config leaves this node out before its turn, if it does. All nodes of a
/// coordinated one go together.
pub(crate) fn why_left_out(restart: &Restart, pod: &Pod) -> Option<&'static str> {
    let runs = Index::manager_of(pod).is_ok_and(|manager| manager.state == State::Running);
    (!restart.is_coordinated() && runs && is_for_configs(restart) && runs_on_wanted(pod))
        .then_some("it runs on the config that its sources have now")
}

/// True if the last run of the pod's engine was begun on the config that its sources have.
fn runs_on_wanted(pod: &Pod) -> bool {
    Index::manager_of(pod).is_ok()
        && pod.checksums().is_some_and(|(runs_on, wanted)| runs_on == wanted)
}

/// Message that changed configs of some nodes are not seen, because their sources are unknown.
fn not_followed(context: &Context<'_>) -> Option<String> {
    let unknown = |pod: &Pod| match &pod.sources {
        Sources::Unknown(message) => Some(message.clone()),
        Sources::Checksum(_) | Sources::Absent(_) => None,
    };
    let why = context.index.pods().find_map(unknown)?;
    Some(format!(
        "spec.restart.onConfigChange does not restart a node whose config sources are unknown: {why}"
    ))
}

/// Strategy of the restart of the drifting nodes, and the value of `by` in its request.
fn how(
    context: &Context<'_>,
    ledger: &Ledger,
    drifting: &[&Pod],
) -> Result<(Strategy, String), Blocker> {
    let by = BY_CONFIG.to_owned();
    let is_auto = match context.policy.on_config_change {
        OnConfigChange::Coordinated => return Ok((Strategy::Coordinated, by)),
        OnConfigChange::Auto => true,
        OnConfigChange::Rolling | OnConfigChange::None => false,
    };
    let change = match needs_coordinated(context, ledger, drifting) {
        Ok(None) => return Ok((Strategy::Rolling, by)),
        Ok(Some(change)) => change,
        // The policy asks for one node at a time by name.
        Err(_) if !is_auto => return Ok((Strategy::Rolling, by)),
        Err(blocker) => {
            let message = format!("{}; ask for a restart", blocker.message);
            return Err(Blocker { message, ..blocker });
        }
    };
    let sentence = change.sentence();
    let wait = |message| Err(Blocker { code: Code::NeedsCoordinated, message });
    if let Some(node) = &change.keeps {
        return wait(format!("{sentence}; but the sources of {node} keep it: change them as well"));
    }
    if is_auto && context.policy.allow_outage {
        return Ok((Strategy::Coordinated, format!("{by}, for {}", change.setting())));
    }
    let (namespace, name) = namespace_and_name(&context.snapshot.cluster.name);
    wait(format!(
        "{sentence}; ask for a coordinated restart, which is an outage: `kubectl stayput -n \
         {namespace} restart {name} --coordinated`"
    ))
}

/// True if the engine runs on another config than its sources have. False if a source is absent, the engine
/// does not run, the manager belongs to another pod, or the node leaves.
fn is_pending(pod: &Pod) -> bool {
    pod.drifts() && Index::manager_of(pod).is_ok() && pod.leaving.is_none()
}

/// Id of the change to the current sources of all pods.
fn change_id(context: &Context<'_>) -> String {
    let mut wanted: Vec<(&str, &[u8])> = context
        .index
        .pods()
        .filter_map(|pod| match &pod.sources {
            Sources::Checksum(wanted) => Some((pod.node.as_str(), wanted.as_bytes())),
            Sources::Unknown(_) | Sources::Absent(_) => None,
        })
        .collect();
    wanted.sort_unstable();
    short_id(OwnKind::Configs, wanted)
}

/// Deletes the pod, or patches it if the step to its template is smaller than a replacement.
pub(crate) fn bring_to_template(
    context: &Context<'_>,
    pod: &Pod,
    not_started: &NotStarted,
    update: &PodUpdate,
) -> Changes {
    let mut changes = Changes::default();
    if let Some(why) = why_not_allowed(context, pod, update) {
        changes.wait(&pod.uid, Code::PodNotStarted, why);
        return changes;
    }
    let (false, false, Some(live)) = (context.snapshot.cluster.paused, pod.terminating, &pod.live)
    else {
        return changes;
    };
    let Some((action, how)) = next_action(pod, live, update) else {
        changes.actions.extend(relabel(pod, live, update));
        return changes;
    };
    changes.wait(&pod.uid, Code::PodNotStarted, format!("{how} for its new template"));
    let (name, fields) = (&pod.name, update.fields());
    let message =
        format!("{name} has never started ({not_started}); {how} for its new template: {fields}");
    changes.event(Some(&pod.uid), Reason::PodRepaired, message);
    changes.actions.push(action);
    changes
}

/// The next change of the pod, and its words for people; `None` once only labels are missing.
fn next_action(pod: &Pod, live: &LivePod, update: &PodUpdate) -> Option<(Action, &'static str)> {
    let uid = pod.uid.clone();
    if update.step == UpdateStep::Replace {
        return Some((Action::DeletePod { uid }, "its pod is deleted"));
    }
    let images = due_images(update, live);
    if !images.is_empty() {
        return Some((Action::PatchImages { uid, images }, "its images are changed"));
    }
    let resources = due_resources(update, live);
    (update.step == UpdateStep::Resize && !resources.is_empty())
        .then_some((Action::Resize { uid, resources }, "its size is changed"))
}
