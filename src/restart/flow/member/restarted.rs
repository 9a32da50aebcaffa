//! Engines that somebody else has started after the request: an operator or a StatefulSet that recreated the
//! pod, the kubelet, a person.

use super::update::{is_for_updates, planned_update};
use crate::blocker::{Check, refuse};
use crate::context::Context;
use crate::{Code, Ending, Manager, Outcome, Pod, Restart, Sources, Strategy};
use stayput_api::{Desired, ExitReason, State};

/// Tolerated clock skew between two machines, in milliseconds: times are known to the second.
const CLOCKS: u64 = 2_000;

/// The ending of a member that waits for its turn and needs none: its engine was started after the request,
/// is in the cluster, and runs on the config that it would be started on.
pub(super) fn needs_no_turn(context: &Context<'_>, restart: &Restart, pod: &Pod) -> Option<Ending> {
    let manager = context.index.manager(&pod.uid).ok()?;
    let is_newer = manager.run_began().is_some_and(|at| at > restart.started.plus(CLOCKS));
    let serves = manager.is_ready()
        && manager.desired == Desired::Running
        && context.index.engine().is_ok()
        && context.index.is_up(pod);
    let is_undisturbed = !pod.terminating && pod.outdated.is_none();
    let is_on_expected = runs_on_expected(pod, manager);
    let is_as_wanted = planned_update(context.policy, restart.request.strategy, pod).is_none()
        && (pod.update.is_ok() || !is_for_updates(restart));
    (is_newer && serves && is_undisturbed && is_on_expected && is_as_wanted).then(|| Ending {
        outcome: Outcome::Done,
        reason: "its engine was started after the request".to_owned(),
    })
}

/// True if the engine runs on the config that it would be started on now.
fn runs_on_expected(pod: &Pod, manager: &Manager) -> bool {
    let runs_on = manager.run.as_ref().and_then(|run| run.checksum.as_ref());
    match &pod.sources {
        Sources::Checksum(wanted) => runs_on == Some(wanted) || pod.ignores_change,
        Sources::Unknown(_) => runs_on == manager.mounted.as_ref(),
        Sources::Absent(_) => false,
    }
}

/// Passes unless a rolling restart would interrupt the start of an engine: somebody started it less than a
/// phase ago, and it is not ready yet and has not failed.
pub(crate) fn until_started(
    context: &Context<'_>,
    restart: &Restart,
    pod: &Pod,
    manager: &Manager,
) -> Check {
    let ended = manager.last_exit.as_ref().map(|exit| exit.reason);
    let has_failed =
        pod.crash_looping || matches!(ended, Some(ExitReason::Exited | ExitReason::Oom));
    let (now, phase) = (context.snapshot.now, context.policy.phase_timeout);
    match manager.run_began() {
        Some(began)
            if restart.request.strategy == Strategy::Rolling
                && manager.state == State::Starting
                && !has_failed
                && now.since(began) < phase =>
        {
            let message =
                format!("{} was started just now: waits until it is ready or has failed", pod.node);
            refuse(Code::NotReady, message)
        }
        Some(_) | None => Ok(()),
    }
}
