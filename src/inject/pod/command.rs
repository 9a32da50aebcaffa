//! The engine's command, with the manager in front of it.

use serde_json::Value;

use crate::edit::Path;
use crate::engine::Engine;
use crate::finding::Found;

/// Where the manager is in the engine's container.
pub(crate) const PROGRAM: &str = "/stayput/stayput";

/// The new command. As Kubernetes does it, the container's `command` replaces the entrypoint of the
/// image, and its `args` the arguments of the image.
pub(super) fn command(
    at: &Path,
    container: &Value,
    chosen: &[String],
) -> Result<Vec<String>, Found> {
    let own = words(&container["command"]);
    let arguments = container.get("args").filter(|args| !args.is_null()).map(words);
    let image = container["image"].as_str().unwrap_or_default();
    let entrypoint: Vec<String> = if !chosen.is_empty() {
        chosen.to_vec()
    } else if !own.is_empty() {
        own.into_iter().chain(arguments.unwrap_or_default()).collect()
    } else if let Some(engine) = Engine::of_image(image) {
        let arguments = arguments.unwrap_or_else(|| vec![engine.arguments.to_owned()]);
        [engine.entrypoint.to_owned()].into_iter().chain(arguments).collect()
    } else {
        return Err(Found::error(
            format!("{at}.image"),
            format!("the entrypoint of the image {image} is not known"),
            "Give it word by word, with its arguments: --command WORD --command WORD",
        ));
    };
    let manager = [PROGRAM, "run", "--"].map(str::to_owned);
    Ok(manager.into_iter().chain(entrypoint).collect())
}

/// A note about a shell that stays in front of the engine.
pub(super) fn shell(at: &Path, command: &[String]) -> Option<Found> {
    let engine = command.get(3..)?;
    (is_shell(engine) && !passes_signals_on(engine.get(2)?)).then(|| {
        Found::note(
            format!("{at}.command"),
            "the shell stays the engine's first process and passes no signal on, so each stop takes \
             as long as it may",
            "Write `exec` before the last command of the script",
        )
    })
}

/// Whether a command is the script of a shell.
pub(super) fn is_shell(command: &[String]) -> bool {
    let [shell, option, ..] = command else { return false };
    matches!(shell.rsplit('/').next(), Some("sh" | "bash")) && option == "-c"
}

/// Whether the manager is in the container already.
pub(crate) fn has_manager(container: &Value) -> bool {
    let command = [words(&container["command"]), words(&container["args"])].concat();
    command.iter().any(|word| word.rsplit('/').next() == Some("stayput"))
}

/// Whether the shell of this script is replaced by what it starts.
pub(super) fn passes_signals_on(script: &str) -> bool {
    script.contains("exec ")
}

pub(super) fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    // A number or a truth value, unquoted, is refused by the apiserver.
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}
