//! Hooks that the kubelet runs in the engine's container: after its start, and before its end.

use serde_json::Value;

use super::command::words;
use super::shell::script_at;
use crate::edit::{Path, Step};
use crate::finding::ObjectIssue;

/// A note about a hook that may wait for the engine. Until it has ended, the status of the pod does not show
/// the new container, so the reconciler sends no start to its manager.
pub(crate) fn post_start(at: &Path, container: &Value) -> Option<ObjectIssue> {
    let hook = &container["lifecycle"]["postStart"];
    let command = words(&hook["exec"]["command"]);
    let is_in_background =
        script_at(&command).is_some_and(|script| ends_in_background(&command[script]));
    (hook.is_object() && !is_in_background).then(|| {
        ObjectIssue::note(
            at.then(Step::key("lifecycle")).then(Step::key("postStart")),
            "the kubelet does not show a container as started until the hook has ended. If it waits for the \
             engine, a restart that needs another container waits until the manager starts the engine by itself",
            "Let what waits run in the background, with its output elsewhere: `(…) >/dev/null 2>&1 &`, or do it \
             outside of this container",
        )
    })
}

/// A hook `preStop`: its duration, and a note about it.
#[derive(Debug, Default)]
pub(crate) struct PreStop {
    /// Duration, if the hook only sleeps. The kubelet counts it as a part of the pod's grace period.
    pub(crate) seconds: i64,
    pub(crate) note: Option<ObjectIssue>,
}

/// The facts about a hook `preStop`. One that only sleeps waits until no Service sends requests any
/// more, as a drain does. One that does more gets a note.
pub(crate) fn pre_stop(at: &Path, container: &Value) -> PreStop {
    let hook = &container["lifecycle"]["preStop"];
    if !hook.is_object() {
        return PreStop::default();
    }
    if let Some(seconds) = sleep(hook) {
        return PreStop { seconds, note: None };
    }
    let note = ObjectIssue::note(
        at.then(Step::key("lifecycle")).then(Step::key("preStop")),
        "a restart in place does not run the hook; before a pod ends, its time is taken from that of the manager",
        "Do what each restart needs elsewhere. Set STAYPUT_TERMINATION_GRACE to the grace period less the hook's time \
         and ten seconds",
    );
    PreStop { seconds: 0, note: Some(note) }
}

/// Seconds for which a hook sleeps, if it does nothing else.
fn sleep(hook: &Value) -> Option<i64> {
    if let Some(seconds) = hook["sleep"]["seconds"].as_i64() {
        return Some(seconds);
    }
    let command = words(&hook["exec"]["command"]);
    let command = match script_at(&command) {
        Some(script) => command[script].clone(),
        None => command.join(" "),
    };
    let mut words = command.split_whitespace();
    let is_sleep = words.next()?.rsplit('/').next() == Some("sleep");
    let seconds = words.next()?.trim_end_matches('s').parse().ok()?;
    (is_sleep && words.next().is_none()).then_some(seconds)
}

/// True if a script goes on in the background with its output redirected. The kubelet waits for all
/// processes that have the hook's output open.
fn ends_in_background(script: &str) -> bool {
    let script = script.trim_end();
    script.ends_with('&') && !script.ends_with("&&") && script.contains('>')
}
