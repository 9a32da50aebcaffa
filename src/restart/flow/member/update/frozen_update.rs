//! The update of a member's pod is frozen when the member takes its slot, and checked again before the stop:
//! the owner may want another one meanwhile.

use std::collections::BTreeMap;

use crate::changes::{Check, refuse};
use crate::flow::labels::until_ahead;
use crate::flow::member::update::container::last_ids;
use crate::flow::member::update::heap_before;
use crate::flow::observed::{is_stopped_by_another, is_to_be_stopped};
use crate::flow::turn::{GiveBack, Turn, TurnView};
use crate::{
    Blocker, Change, Code, Context, Ledger, LivePod, Member, MemberUpdate, Pod, PodUpdate, Policy,
    Restart, Stays, Strategy, UpdateStep,
};

/// Value of `by` in a request that updates pods.
pub(crate) const BY_UPDATE: &str = "spec.update";

/// The update that a restart with this strategy makes of a pod besides its process. `None`: the owner wants
/// nothing else, the policy does not allow that step, or the update is unknown. A coordinated restart has
/// none: it starts all nodes in one moment, and does not wait for containers.
pub(crate) fn planned_update<'a>(
    policy: &Policy,
    strategy: Strategy,
    pod: &'a Pod,
) -> Option<&'a PodUpdate> {
    let update = pod.update.as_ref().ok()?.as_ref()?;
    let is_allowed = update.step.is_of_a_restart() && is_allowed(policy, pod, update);
    (is_allowed && strategy != Strategy::Coordinated).then_some(update)
}

/// True if the policy allows the step, and the apiserver the change of the pod.
pub(crate) fn is_allowed(policy: &Policy, pod: &Pod, update: &PodUpdate) -> bool {
    policy.update.contains(&update.step) && refusal(pod, update).is_none()
}

/// Why the apiserver would not delete the pod for this update, or not change it.
fn refusal<'p>(pod: &'p Pod, update: &PodUpdate) -> Option<&'p String> {
    let replaces = update.step == UpdateStep::Replace;
    if replaces { pod.undeletable.as_ref() } else { pod.unchangeable.as_ref() }
}

/// Reason why the update of a pod is not carried out, if it may not be, and what to do about it.
pub(crate) fn why_not_allowed(
    context: &Context<'_>,
    pod: &Pod,
    update: &PodUpdate,
) -> Option<String> {
    let Context { snapshot, policy, .. } = context;
    if is_allowed(policy, pod, update) {
        return None;
    }
    let (step, fields) = (update.step.name(), update.fields());
    let what = if update.from == update.to {
        "the content of its Secrets and ConfigMaps"
    } else {
        "its pod template"
    };
    if !policy.update.contains(&update.step) {
        let otherwise = match &pod.operator {
            Some(operator) => format!("; {}", operator.remedy(&snapshot.cluster)),
            None => ", or delete the pod yourself".to_owned(),
        };
        return Some(format!(
            "{what} has changed and needs the step {step}, which spec.update.allow does not \
             have: add it there{otherwise} ({fields})"
        ));
    }
    let why = refusal(pod, update)?;
    Some(match update.step {
        UpdateStep::Replace => format!(
            "{what} has changed and needs another pod, and this one cannot be deleted: {why} ({fields})"
        ),
        UpdateStep::None
        | UpdateStep::Relabel
        | UpdateStep::Restart
        | UpdateStep::Container
        | UpdateStep::Resize
        | UpdateStep::Move => format!(
            "its pod template has changed and needs the step {step}, and the apiserver refuses to change \
             the pod: {why} ({fields})"
        ),
    })
}

/// The update to freeze for a pod, with the state of the pod before it, if there is one.
pub(crate) fn freeze(
    context: &Context<'_>,
    restart: &Restart,
    pod: &Pod,
) -> Result<Option<Box<MemberUpdate>>, Blocker> {
    if let Err(unknown) = &pod.update
        && is_for_updates(restart)
    {
        refuse(Code::UpdateUnknown, &unknown.message)?;
    }
    let strategy = restart.request.strategy;
    let Some(update) = planned_update(context.policy, strategy, pod) else { return Ok(None) };
    it_fits(update.step, pod)?;
    let unknown = |message: &str| Blocker { code: Code::UpdateUnknown, message: message.into() };
    let live = pod.live.as_ref().ok_or_else(|| unknown("the state of its pod was not read"))?;
    until_ahead(pod, live, update)?;
    if update.makes_a_container() && live.container_id.is_none() {
        return Err(unknown("the id of its manager's container is not known yet"));
    }
    // The settings were judged before.
    let mut update = PodUpdate { settings: None, ..update.clone() };
    see(&mut update.patch.images, &live.images, |seen, wanted| seen == wanted);
    see(&mut update.patch.resources, &live.resources, covers);
    // If the claims cannot be read, it is not known whether the pod fits either.
    let uids = pod.claim_uids.as_ref().ok().filter(|_| update.step == UpdateStep::Replace);
    Ok(Some(Box::new(MemberUpdate {
        heap: heap_before(context, pod, &update),
        // A pod that is replaced keeps no container.
        others: if update.step == UpdateStep::Replace {
            BTreeMap::new()
        } else {
            last_ids(&update.patch.images, live)
        },
        update,
        container_id: live.container_id.clone(),
        claims: live.claims.clone(),
        claim_uids: uids.cloned().unwrap_or_default(),
        given_up_id: None,
        given_up: BTreeMap::new(),
        stays: Stays::default(),
        late_since: None,
        hindered_since: None,
    })))
}

/// Passes unless the step needs room on a Kubernetes node for another pod or for another size, and there is
/// none. An unknown answer blocks another pod only: the kubelet also checks another size.
fn it_fits(step: UpdateStep, pod: &Pod) -> Check {
    match (step, &pod.room) {
        (UpdateStep::Replace | UpdateStep::Resize, Ok(Some(why))) => refuse(Code::WouldNotFit, why),
        (UpdateStep::Replace, Err(unknown)) => refuse(Code::WouldNotFit, &unknown.message),
        _ => Ok(()),
    }
}

/// Like [`it_fits`], for the update that a restart would make of the pod now.
pub(crate) fn planned_update_fits(context: &Context<'_>, restart: &Restart, pod: &Pod) -> Check {
    let planned = planned_update(context.policy, restart.request.strategy, pod);
    planned.map_or(Ok(()), |update| it_fits(update.step, pod))
}

/// True if the restart was requested to update pods.
pub(crate) fn is_for_updates(restart: &Restart) -> bool {
    restart.request.by.as_deref() == Some(BY_UPDATE)
}

/// Reason why a restart that updates pods leaves this one out before its turn, if it does. A node that
/// somebody has stopped is updated by another restart once it runs.
pub(crate) fn why_left_out(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
) -> Option<&'static str> {
    if pod.update == Ok(None) {
        return Some("its pod needs no update");
    }
    if let Ok(Some(update)) = &pod.update
        && !is_allowed(context.policy, pod, update)
    {
        return Some("the step that its template needs is not allowed");
    }
    if is_to_be_stopped(context, pod) {
        return Some("it must stay stopped");
    }
    is_stopped_by_another(context, ledger, pod).then_some("another client has stopped its engine")
}

/// Passes if the frozen update is still the wanted one, of the container that runs now.
pub(crate) fn refresh(view: &TurnView<'_, '_>, pod: &Pod) -> Result<(), Turn> {
    let TurnView { context, restart, member, .. } = *view;
    let now = match (&pod.update, &member.update, &pod.live) {
        // The wanted update is only unknown for now.
        (Err(_), Some(fixed), Some(live)) => {
            it_fits(fixed.update.step, pod).map_err(without_a_stop)?;
            let container_id = live.container_id.clone();
            let mut now = MemberUpdate { container_id, ..(**fixed).clone() };
            now.others.extend(last_ids(&fixed.update.patch.images, live));
            Some(Box::new(now))
        }
        _ => freeze(context, restart, pod).map_err(without_a_stop)?,
    };
    // An engine that is unreachable now has reported its heap before.
    let heap = member.update.as_ref().and_then(|fixed| fixed.heap);
    let with_heap = |mut fixed: Box<MemberUpdate>| {
        fixed.heap = fixed.heap.or(heap);
        fixed
    };
    let now = now.map(with_heap);
    if now == member.update {
        return Ok(());
    }
    if now.is_none() && is_for_updates(restart) {
        let update = pod.update.as_ref().ok().and_then(Option::as_ref);
        let not_allowed = update.and_then(|update| why_not_allowed(context, pod, update));
        let as_it_is = || "its pod needs no update any more".to_owned();
        let reason = not_allowed.unwrap_or_else(as_it_is);
        return Err(Turn::GiveBack(GiveBack { reason, by_rule: false }));
    }
    Err(Turn::change(Member { update: now, ..member.clone() }))
}

/// The turn of a member that cannot be updated now. Room for another pod may be missing for long: then the
/// member gives its slot back.
fn without_a_stop(blocker: Blocker) -> Turn {
    if blocker.code == Code::WouldNotFit {
        Turn::GiveBack(GiveBack { reason: blocker.message, by_rule: true })
    } else {
        Turn::Wait(blocker)
    }
}

/// True if the stop of a member tells its manager to exit, so that the kubelet makes a new container. With a
/// new image it does so anyway.
pub(crate) fn exits(member: &Member, pod: &Pod) -> bool {
    let Some(fixed) = member.update.as_ref().filter(|fixed| fixed.update.makes_a_container())
    else {
        return false;
    };
    pod.live.as_ref().is_none_or(|live| !is_image_of_manager_due(fixed, pod, live))
}

/// True if the image of the manager's container is still to be changed: the kubelet makes another container
/// then.
pub(crate) fn is_image_of_manager_due(fixed: &MemberUpdate, pod: &Pod, live: &LivePod) -> bool {
    due_images(&fixed.update, live).keys().any(|container| is_managers(pod, container))
}

/// True if this is the manager's container, or if nobody knows which one is.
pub(crate) fn is_managers(pod: &Pod, container: &str) -> bool {
    pod.container.as_deref().is_none_or(|managers| managers == container)
}

/// The changes that a living pod does not have yet, each from its present value.
pub(crate) fn due(
    changes: &BTreeMap<String, Change>,
    live: &BTreeMap<String, String>,
    is_same: fn(&str, &str) -> bool,
) -> BTreeMap<String, Change> {
    let mut due = changes.clone();
    see(&mut due, live, is_same);
    due.retain(|_, change| change.seen != change.wanted);
    due
}

/// Changes of images that a living pod does not have yet.
pub(crate) fn due_images(update: &PodUpdate, live: &LivePod) -> BTreeMap<String, Change> {
    due(&update.patch.images, &live.images, |seen, wanted| seen == wanted)
}

/// Changes of sizes that a living pod does not have yet.
pub(crate) fn due_resources(update: &PodUpdate, live: &LivePod) -> BTreeMap<String, Change> {
    due(&update.patch.resources, &live.resources, covers)
}

/// Replaces the old values of changes by those of the living pod: admission may have changed the ones of the
/// template. A value that is as wanted counts as the one wanted.
fn see(
    changes: &mut BTreeMap<String, Change>,
    live: &BTreeMap<String, String>,
    is_same: fn(&str, &str) -> bool,
) {
    for (container, change) in changes {
        let seen = live.get(container);
        let same = seen.zip(change.wanted.as_ref()).is_some_and(|(one, two)| is_same(one, two));
        change.seen = if same { change.wanted.clone() } else { seen.cloned() };
    }
}

/// True if the resources `seen`, as JSON, contain all that is wanted: a living pod has defaults besides.
pub(crate) fn covers(seen: &str, wanted: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    seen == wanted || read(seen).zip(read(wanted)).is_some_and(|(seen, wanted)| has(&seen, &wanted))
}

fn has(seen: &serde_json::Value, wanted: &serde_json::Value) -> bool {
    match (seen.as_object(), wanted.as_object()) {
        (Some(seen), Some(wanted)) => {
            wanted.iter().all(|(key, wanted)| seen.get(key).is_some_and(|seen| has(seen, wanted)))
        }
        _ => seen == wanted,
    }
}
