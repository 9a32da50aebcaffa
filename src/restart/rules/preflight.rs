//! Checks if a pod's engine can be stopped and started at all, whatever the state of the cluster.

use crate::changes::{Blocker, Check, refuse};
use crate::snapshot::{exec_manager, namespace_and_name};
use crate::{Code, Manager, Pod, Sources};
use stayput_api::{Desired, RequestKind, State};

/// Passes if the engine of this pod can be stopped and started again: its manager answers, belongs to
/// this pod and has a durable journal, nothing is about to replace or kill the pod, and the config
/// for the start is known. The most certain obstacle is checked first. `cluster` is the full name of the
/// SearchCluster.
///
/// # Errors
/// The first blocker.
pub(crate) fn preflight<'p>(cluster: &str, pod: &'p Pod) -> Result<&'p Manager, Blocker> {
    if pod.terminating {
        refuse(Code::PodGone, format!("the pod {} is being deleted", pod.name))?;
    }
    if let Some(how_far) = &pod.leaving {
        refuse(Code::Leaving, format!("{} leaves the cluster: {how_far}", pod.node))?;
    }
    let manager = match (&pod.manager, &pod.not_started) {
        (Ok(manager), _) => manager,
        (Err(_), Some(not_started)) => {
            let message = format!("the pod of {} has never started: {not_started}", pod.node);
            return Err(Blocker { code: Code::PodNotStarted, message });
        }
        (Err(unknown), None) => {
            return Err(Blocker {
                code: Code::ManagerUnreachable,
                message: format!(
                    "the status of the manager of {} is unknown: {}",
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
                "the journal of the manager of {} would not survive a crash, so the manager could \
                 forget a stop: put its state directory on a volume of the pod",
                pod.node
            ),
        )?;
    }
    config(pod, manager)?;
    engine(cluster, pod, manager)?;
    Ok(manager)
}

fn same_pod(pod: &Pod, manager: &Manager) -> Check {
    match &manager.pod_uid {
        Some(uid) if *uid == pod.uid => Ok(()),
        Some(uid) => refuse(
            Code::WrongPod,
            format!(
                "the manager that answers for {} belongs to the pod with uid {uid}, and this pod has \
                 uid {}: if the pod was replaced just now, this passes by itself; if not, two pods \
                 share an address or the manager was given a wrong uid",
                pod.node, pod.uid
            ),
        ),
        None => refuse(
            Code::WrongPod,
            format!(
                "the manager of {} does not know which pod it is in, so a request could reach \
                 another pod: give its container the pod's metadata.uid by the downward API",
                pod.node
            ),
        ),
    }
}

/// Passes if nothing replaces or kills the pod once the engine is down.
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

/// Passes if the config for the start is known: with declared sources, the sources and the manager must both
/// know it.
fn config(pod: &Pod, manager: &Manager) -> Check {
    match (&pod.sources, &manager.mounted) {
        (Sources::Unknown(_), _) => Ok(()),
        (Sources::Checksum(_) | Sources::Absent(_), None) => refuse(
            Code::ConfigUnknown,
            format!(
                "the sources of its config are known, but the manager of {} has no checksum of its mounted \
                 config: check the config directory in its settings, and its status for a config \
                 that cannot be read",
                pod.node
            ),
        ),
        (Sources::Absent(message), Some(_)) => refuse(Code::SourceAbsent, message),
        (Sources::Checksum(_), Some(_)) => Ok(()),
    }
}

/// Passes if the engine is in a state in which it can be stopped.
fn engine(cluster: &str, pod: &Pod, manager: &Manager) -> Check {
    let node = &pod.node;
    match (manager.state, manager.desired) {
        (State::Stuck, _) => refuse(
            Code::EngineBusy,
            format!("a process of {node} survives SIGKILL: replace the pod or restart its host"),
        ),
        (State::Stopping | State::Killing, _) => refuse(
            Code::EngineBusy,
            format!("{node} is already being stopped: waits until it has stopped"),
        ),
        // Another client stopped it, for an unknown reason.
        (_, Desired::Stopped) => refuse(
            Code::KeptStopped,
            format!(
                "{node} was stopped by {}, not by us, and stays stopped: `kubectl -n {} exec {} \
                 start` starts it again",
                stopper(manager),
                namespace_and_name(cluster).0,
                exec_manager(&pod.name, pod.container.as_deref(), pod.program.as_deref())
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

/// Name of the client that requested the stop, if the manager still knows it.
fn stopper(manager: &Manager) -> &str {
    manager
        .last_request
        .as_ref()
        .filter(|last| last.accepted && last.kind == RequestKind::Stop)
        .map_or("an earlier request", |last| &last.by)
}
