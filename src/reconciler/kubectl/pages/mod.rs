//! What people read, one file a command: from a view to text, and nothing else.

mod ahead;
mod history;
mod plan;
mod status;
mod why;

pub(super) use ahead::ahead;
pub(super) use history::history;
pub(super) use plan::{asked, plan};
pub(super) use status::status;
pub(super) use why::{why, why_then};

use super::text::Tone;
use super::view::{Pod, View};
use stayput_restart::Outcome;

/// What is missing if there is no status.
pub(super) const UNSEEN: &str = "stayput-reconciler has not looked at it yet: does it run, and look \
                                 after this namespace? (kubectl get pods -A -l \
                                 app.kubernetes.io/name=stayput-reconciler)";

const fn tone_of_outcome(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Done => Tone::Good,
        Outcome::Superseded => Tone::Heed,
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered => Tone::Bad,
    }
}

/// `start`, or why there is no phase.
fn phase_of(view: &View, pod: &Pod) -> String {
    match &pod.phase {
        Some(phase) => phase.clone(),
        None if view.is_kept_stopped(pod) => "(kept stopped)".into(),
        None => "-".into(),
    }
}

/// What there is to say about a node in one sentence.
fn message(view: &View, pod: &Pod) -> String {
    let report = view.report(&pod.node);
    let told = report.and_then(|report| report.message.clone());
    let blocked = report.and_then(|report| report.blocked_by.as_deref());
    match (told, blocked) {
        (Some(told), Some(rule)) => format!("{rule}: {told}"),
        (Some(told), None) => told,
        (None, _) if view.is_kept_stopped(pod) => "it is to be kept stopped".into(),
        (None, _) if pod.phase.is_some() => "the reconciler has yet to say".into(),
        (None, _) => "nothing is asked of it".into(),
    }
}
