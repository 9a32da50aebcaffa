//! Whether a pod and its manager are fit for a stop at all, whatever the cluster thinks of it.

use crate::blocker::{Blocker, Check, refuse};
use crate::{Code, Manager, Pod, Sources};
use stayput_api::{Desired, RequestKind, State};

/// Passes if the engine of this pod could be stopped and started again: its manager is there, is
/// this pod's and will keep its word, nobody is about to replace or kill the pod, and the config it
/// would be started on is known. What is most certain to thwart a restart comes first.
///
/// # Errors
/// The first thing in the way.
pub(crate) fn preflight(pod: &Pod) -> Result<&Manager, Blocker> {
    if pod.terminating {
        refuse(
            Code::PodGone,
            format!("the pod {} is being deleted; the pod that replaces it is a new one", pod.name),
        )?;
    }
    let manager = match &pod.manager {
        Ok(manager) => manager,
        Err(unknown) => {
            return Err(Blocker {
                code: Code::ManagerUnreachable,
                message: format!(
                    "the manager of {} gives no answer: {}",
                    pod.node, unknown.message
                ),
            });
        }
    };
    same_pod(pod, manager)?;
    undisturbed(pod, manager)?;
    if !manager.durable {
        refuse(
            Code::NotDurable,
            format!(
                "the manager of {} cannot write its journal so that it outlives a crash, and might \
                 forget that it was asked to stop: give its state directory a volume of the pod",
                pod.node
            ),
        )?;
    }
    config(pod, manager)?;
    engine(pod, manager)?;
    Ok(manager)
}

/// The manager that answers is that of this very pod.
fn same_pod(pod: &Pod, manager: &Manager) -> Check {
    match &manager.pod_uid {
        Some(uid) if *uid == pod.uid => Ok(()),
        Some(uid) => refuse(
            Code::WrongPod,
            format!(
                "the manager that answers for {} is that of the pod with uid {uid}, and this pod's \
                 is {}: if it was replaced just now this passes by itself, else two pods share an \
                 address or the manager was given a wrong uid",
                pod.node, pod.uid
            ),
        ),
        None => refuse(
            Code::WrongPod,
            format!(
                "the manager of {} does not know which pod it is in, so an order could reach \
                 another one: give its container the pod's metadata.uid by the downward API",
                pod.node
            ),
        ),
    }
}

/// Nobody interferes as soon as the engine is down.
fn undisturbed(pod: &Pod, manager: &Manager) -> Check {
    if let Some(message) = &pod.outdated {
        return refuse(Code::OwnerWillReplace, message);
    }
    if let Some(message) = &pod.deadly_probe {
        return refuse(Code::LivenessWouldKill, message);
    }
    match &manager.live_mismatch {
        Some(message) => refuse(Code::LiveMismatch, message),
        None => Ok(()),
    }
}

/// The config is known on both sides, if sources are declared.
fn config(pod: &Pod, manager: &Manager) -> Check {
    match (&pod.sources, &manager.mounted) {
        (Sources::Undeclared, _) => Ok(()),
        (Sources::Checksum(_) | Sources::Absent(_), None) => refuse(
            Code::ConfigUnknown,
            format!(
                "spec.config.sources is set, but the manager of {} knows no checksum of its \
                 mounted config: name the mount in its settings, and see its status for a config \
                 that cannot be read",
                pod.node
            ),
        ),
        (Sources::Absent(message), Some(_)) => refuse(Code::SourceAbsent, message),
        (Sources::Checksum(_), Some(_)) => Ok(()),
    }
}

/// The engine's process is in a state that a stop leads out of.
fn engine(pod: &Pod, manager: &Manager) -> Check {
    let node = &pod.node;
    match (manager.state, manager.desired) {
        (State::Stuck, _) => refuse(
            Code::EngineBusy,
            format!("a process of {node} survives KILL; only a new pod, or the host, can help"),
        ),
        (State::Stopping | State::Killing, _) => {
            refuse(Code::EngineBusy, format!("{node} is being stopped already: waits for its end"))
        }
        // Whoever stopped it has a reason that we do not know.
        (_, Desired::Stopped) => refuse(
            Code::KeptStopped,
            format!(
                "{node} was stopped by {}, not by us, and stays so: `kubectl stayput start` brings \
                 it back",
                stopper(manager)
            ),
        ),
        (State::Stopped, Desired::Running) => refuse(
            Code::EngineBusy,
            format!("{node} is about to be started: waits until its process exists"),
        ),
        (State::Starting | State::Running | State::Backoff | State::Failed, Desired::Running) => {
            Ok(())
        }
    }
}

/// Who asked for the stop, as far as the manager still knows.
fn stopper(manager: &Manager) -> &str {
    manager
        .last_request
        .as_ref()
        .filter(|last| last.accepted && last.kind == RequestKind::Stop)
        .map_or("an earlier request", |last| &last.by)
}
