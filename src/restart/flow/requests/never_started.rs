//! A pod that has never started gets its new template at once: no engine runs in it that would have to be
//! stopped, and its volume claims stay.

use crate::changes::Changes;
use crate::context::Context;
use crate::flow::member::update::labels::relabel;
use crate::flow::member::update::{due_images, due_resources, why_not_allowed};
use crate::{Action, Code, LivePod, NotStarted, Pod, PodUpdate, Reason, UpdateStep};

/// Deletes the pod, or patches it if the step to its template is smaller than a replacement.
pub(super) fn bring_to_template(
    context: &Context<'_>,
    pod: &Pod,
    not_started: &NotStarted,
    update: &PodUpdate,
) -> Changes {
    let mut changes = Changes::default();
    if let Some(why) = why_not_allowed(context.policy, pod, update) {
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
