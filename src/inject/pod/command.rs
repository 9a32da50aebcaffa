//! The engine's command, with the manager in front of it.

use std::fmt;

use serde_json::Value;

use super::script;
use super::shell::script_at;
use crate::edit::Path;
use crate::engine::Engine;
use crate::finding::ObjectIssue;

/// Path of the manager in the engine's container.
pub(crate) const PROGRAM: &str = "/stayput/stayput";

/// The new command of the engine's container.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    /// The words of the command that the manager starts.
    pub(super) engine: Vec<String>,
}

impl Command {
    fn of(engine: Vec<String>) -> Self {
        let manager = [PROGRAM, "run", "--"].map(str::to_owned);
        Self { words: manager.into_iter().chain(engine.iter().cloned()).collect(), engine }
    }

    /// True if a script runs to its end before the manager starts.
    pub(super) fn has_script_before(&self) -> bool {
        self.words.first().is_some_and(|first| first != PROGRAM)
    }

    /// True if a shell reads a script, either before the manager or as the manager's child.
    pub(super) fn has_script(&self) -> bool {
        script_at(&self.words).is_some()
    }
}

/// The new command. As Kubernetes does it, the container's `command` replaces the entrypoint of the
/// image, and its `args` the arguments of the image.
pub(super) fn command(
    at: &Path,
    container: &Value,
    chosen: &[String],
) -> Result<Command, ObjectIssue> {
    let own = words(&container["command"]);
    let arguments = container.get("args").filter(|args| !args.is_null()).map(words);
    let image = container["image"].as_str().unwrap_or_default();
    if !chosen.is_empty() {
        return Ok(Command::of(chosen.to_vec()));
    }
    if !own.is_empty() {
        let own = own.into_iter().chain(arguments.unwrap_or_default()).collect();
        return behind_plugins(at, own);
    }
    let Some(engine) = Engine::of_image(image) else {
        return Err(ObjectIssue::error(
            format!("{at}.image"),
            format!("the entrypoint of the image {image} is not known"),
            "Give it word by word, with its arguments: --command WORD --command WORD. If it is no engine, leave it \
             out: --skip KIND/NAME",
        ));
    };
    let arguments = arguments.unwrap_or_else(|| vec![engine.arguments.to_owned()]);
    // The images' entrypoints start a shell, too, if that is their argument.
    behind_plugins(at, [engine.entrypoint.to_owned()].into_iter().chain(arguments).collect())
}

/// The manager in front of the container's own command. If that is a script that installs plugins, the
/// manager comes behind them: each start runs what is behind the manager once more.
fn behind_plugins(at: &Path, own: Vec<String>) -> Result<Command, ObjectIssue> {
    let Some(place) = own.iter().position(|word| script::changes_plugins(word)) else {
        return Ok(Command::of(own));
    };
    // It can be changed only where it is known to be the script of a shell.
    let is_script = script_at(&own) == Some(place);
    let Some((script, engine)) = script::split(&own[place]).filter(|_| is_script) else {
        return Err(ObjectIssue::error(
            format!("{at}.command"),
            "its script installs plugins, or removes some. A restart in place would run it once more, and a plugin \
             that is there, or is not there any more, is refused",
            "Let the script end with the one command that starts the engine, or take the plugins into the image",
        ));
    };
    let mut words = own;
    words[place] = script;
    Ok(Command { words, engine })
}

/// A note about a shell that stays in front of the engine.
pub(super) fn shell(at: &Path, engine: &[String]) -> Option<ObjectIssue> {
    let script = &engine[script_at(engine)?];
    (!passes_signals_on(script)).then(|| {
        ObjectIssue::note(
            format!("{at}.command"),
            "the shell stays in front of the engine and passes no signal on, so each stop takes as long as \
             it may",
            "Write `exec` before the last command of the script",
        )
    })
}

/// True if the container has the manager already, also in a script.
pub(crate) fn has_manager(container: &Value) -> bool {
    let command = [words(&container["command"]), words(&container["args"])].concat();
    let mut words = command.iter().flat_map(|word| word.split_whitespace());
    words.any(|word| word.rsplit('/').next() == Some("stayput"))
}

/// The error for a manager that was added by hand.
pub(crate) fn by_hand(field: impl fmt::Display) -> ObjectIssue {
    ObjectIssue::error(
        field,
        "the manager is there already, and not from inject",
        "Take out what was added by hand, or leave it as it is",
    )
}

/// True if the shell of this script is replaced by the program that it starts.
pub(super) fn passes_signals_on(script: &str) -> bool {
    script.contains("exec ")
}

pub(super) fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    // A number or a truth value, unquoted, is refused by the apiserver.
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}
