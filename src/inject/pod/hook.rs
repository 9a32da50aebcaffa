//! What the kubelet runs in the engine's container when it has started it.

use serde_json::Value;

use super::command::words;
use super::shell::script_at;
use crate::edit::{Path, Step};
use crate::finding::Found;

/// A note about a hook that may wait for the engine. Until it has ended, the status of the pod does not show
/// the new container, so the reconciler sends no start to its manager.
pub(crate) fn post_start(at: &Path, container: &Value) -> Option<Found> {
    let hook = &container["lifecycle"]["postStart"];
    let command = words(&hook["exec"]["command"]);
    let is_in_background =
        script_at(&command).is_some_and(|script| ends_in_background(&command[script]));
    (hook.is_object() && !is_in_background).then(|| {
        Found::note(
            at.then(Step::key("lifecycle")).then(Step::key("postStart")),
            "the kubelet does not show a container as started until the hook has ended. If it waits for the \
             engine, a restart that needs another container waits until the manager starts the engine by itself",
            "Let what waits run in the background, with its output elsewhere: `(…) >/dev/null 2>&1 &`, or do it \
             outside of this container",
        )
    })
}

/// The kubelet waits for all that has the hook's output open.
fn ends_in_background(script: &str) -> bool {
    let script = script.trim_end();
    script.ends_with('&') && !script.ends_with("&&") && script.contains('>')
}
