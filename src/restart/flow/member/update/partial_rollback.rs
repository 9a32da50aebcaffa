//! Partial rollback: a pod keeps the changes that the apiserver refuses to roll back. The engine is started
//! in it all the same: to wait for another answer would keep the node down.

use super::container::is_made_anew;
use super::frozen_update::{due_images, due_resources, is_managers};
use super::labels::relabel;
use super::rollback::{next_of, refusal_of_next};
use crate::{Action, Ledger, Member, MemberStep, MemberUpdate, Pod, PodPatch};

/// The next patch of a pod's rollback, if its turn or a debt asks for one: the apiserver is asked by a dry
/// run before.
pub(crate) fn set_back_next(ledger: &Ledger, pod: &Pod) -> Option<PodPatch> {
    let is_brought_back = |member: &&Member| member.step == MemberStep::Aborting;
    let members = ledger.members().filter(is_brought_back);
    let members = members.map(|member| (&member.pod_uid, &member.update));
    let owed = ledger.debts.start.iter().map(|debt| (&debt.pod_uid, &debt.update));
    let (_, fixed) = members.chain(owed).find(|(uid, _)| **uid == pod.uid)?;
    next_of(fixed.as_ref()?, pod)
}

/// The update of a pod, with the changes that the apiserver refuses to roll back, and the end of a message
/// about that.
pub(crate) fn refused(fixed: &MemberUpdate, pod: &Pod) -> Option<(MemberUpdate, String)> {
    let refusal = refusal_of_next(fixed, pod)?;
    let PodPatch { images, resources, .. } = refusal.patch.clone();
    let is_the_managers = images.keys().any(|container| is_managers(pod, container));
    if is_the_managers && pod.live.as_ref()?.container_id.is_none() {
        // Nothing could be started in the pod as it is.
        return None;
    }
    let what = if images.is_empty() { "size" } else { "image" };
    let told = format!(
        "; its pod keeps the new {what}, since the apiserver refuses the rollback: {}",
        refusal.why
    );
    let mut update = fixed.clone();
    if is_the_managers {
        // No other container is made then.
        update.given_up_id = None;
    }
    update.stays.images.extend(images.into_keys());
    update.stays.resources.extend(resources.into_keys());
    Some((update, told))
}

/// The patch that labels a pod with the template that it was changed to, if it keeps all changes of that
/// template. With the old label, a reverted template would have no effect.
pub(crate) fn label(fixed: &MemberUpdate, pod: &Pod) -> Option<Action> {
    let live = pod.live.as_ref()?;
    let is_whole = due_images(&fixed.update, live).is_empty()
        && due_resources(&fixed.update, live).is_empty()
        && is_made_anew(fixed, live);
    (is_whole && !fixed.stays.is_empty()).then(|| relabel(pod, live, &fixed.update))?
}
