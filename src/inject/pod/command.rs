//! The engine's command with the manager in front of it; scripts of shells, and hooks of the kubelet.

use std::fmt;

use serde_json::Value;
use stayput_pod_spec::{EngineImage, PROGRAM, command as manager_command};

use crate::finding::ObjectIssue;
use crate::yaml::{Path, Step};

/// The new command of the engine's container.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    /// The words of the command that the manager starts.
    pub(super) engine: Vec<String>,
}

impl Command {
    fn of(engine: Vec<String>) -> Self {
        Self { words: manager_command(engine.iter().cloned()), engine }
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
    let Some(engine) = EngineImage::of_image(image) else {
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
    let Some(place) = own.iter().position(|word| changes_plugins(word)) else {
        return Ok(Command::of(own));
    };
    // It can be changed only where it is known to be the script of a shell.
    let is_script = script_at(&own) == Some(place);
    let Some((script, engine)) = split_script(&own[place]).filter(|_| is_script) else {
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
fn passes_signals_on(script: &str) -> bool {
    script.contains("exec ")
}

pub(crate) fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    // A number or a truth value, unquoted, is refused by the apiserver.
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}

/// The first process of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entrypoint {
    /// The manager is its first process, or the image may make it that.
    Manager,
    /// The manager is started by this program, which stays in front of it.
    Behind(String),
    /// The engine is started without the manager.
    Engine,
}

/// How the command or the image of a container starts it.
pub fn entrypoint(container: &Value) -> Entrypoint {
    let command = words(&container["command"]);
    let arguments = words(&container["args"]);
    let is_manager = |word: &String| word.rsplit('/').next() == Some("stayput");
    let Some(first) = command.first() else {
        let image = container["image"].as_str().unwrap_or_default();
        // An image that is not known may have the manager as its entrypoint.
        let is_engine =
            EngineImage::of_image(image).is_some() && !EngineImage::is_behind_manager(image);
        return if is_engine && !arguments.iter().any(is_manager) {
            Entrypoint::Engine
        } else {
            Entrypoint::Manager
        };
    };
    if is_manager(first) {
        return Entrypoint::Manager;
    }
    let all = [command.as_slice(), &arguments].concat();
    let script =
        all.iter().find(|word| word.split_whitespace().any(|each| is_manager(&each.into())));
    match script {
        None => Entrypoint::Engine,
        // Bash and others replace themselves by what `exec` names.
        Some(script) if passes_signals_on(script) => Entrypoint::Manager,
        Some(_) => Entrypoint::Behind(first.clone()),
    }
}

/// Index of a shell's script in a command: the word behind `-c`. Other words can stand before the shell,
/// such as those of an init, and options of the shell on both sides of `-c`.
pub(super) fn script_at(command: &[String]) -> Option<usize> {
    let is_shell =
        |word: &String| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "dash" | "ash"));
    let shell = command.iter().position(is_shell)?;
    let mut reads_script = false;
    let mut words = command.iter().enumerate().skip(shell + 1);
    while let Some((at, word)) = words.next() {
        match word.strip_prefix(['-', '+']) {
            None => return reads_script.then_some(at),
            // The end of the options.
            Some("" | "-") => return words.next().map(|(at, _)| at).filter(|_| reads_script),
            Some("-rcfile" | "-init-file") => {
                words.next();
            }
            Some(long) if long.starts_with('-') => {}
            Some(letters) => {
                reads_script |= word.starts_with('-') && letters.contains('c');
                // The name of an option follows each of them, as in `-euo pipefail`.
                for _ in letters.matches(['o', 'O']) {
                    words.next();
                }
            }
        }
    }
    None
}

/// Programs that start an engine in the known images.
const STARTS: [&str; 6] = [
    "opensearch-docker-entrypoint.sh",
    "docker-entrypoint.sh",
    "entrypoint.sh",
    "run.sh",
    "opensearch",
    "elasticsearch",
];
/// Programs that refuse to install a plugin that is there, and to remove one that is not.
const PLUGINS: [&str; 2] = ["opensearch-plugin", "elasticsearch-plugin"];

/// True if a script installs or removes a plugin without a test if it is there. Once more in the same
/// container it would fail.
fn changes_plugins(script: &str) -> bool {
    let script = script.replace("\\\n", " ").replace(['\'', '"'], "");
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut inside_if = 0;
    for list in lines.flat_map(|line| line.split(';')) {
        let mut is_asked = list.contains("||");
        for part in list.split("&&") {
            let pipe: Vec<Vec<&str>> =
                part.split('|').map(|command| command_words(command, &mut inside_if)).collect();
            if inside_if == 0 && !is_asked && pipe.iter().any(|command| is_change(command)) {
                return true;
            }
            let asks = |command: Option<&Vec<&str>>, programs: &[&str]| {
                command
                    .and_then(|words| words.first())
                    .is_some_and(|first| programs.contains(first))
            };
            is_asked |= asks(pipe.first(), &["[", "[[", "test", "!"]);
            is_asked |= asks(pipe.last(), &["grep"]);
        }
    }
    false
}

/// The words of a command without brackets, and without the words of the shell before it. Counts how
/// deep it is inside an `if`.
fn command_words<'a>(command: &'a str, inside_if: &mut usize) -> Vec<&'a str> {
    let is_between = |one: char| one.is_whitespace() || "(){}`".contains(one);
    let words = command.split(is_between).filter(|word| !word.is_empty());
    let is_of_shell = |word: &&str| {
        match *word {
            "then" => *inside_if += 1,
            "elif" | "fi" => *inside_if = inside_if.saturating_sub(1),
            "if" | "else" | "while" | "until" | "do" => {}
            _ => return false,
        }
        true
    };
    words.skip_while(is_of_shell).collect()
}

fn is_change(command: &[&str]) -> bool {
    let program = command.iter().position(|word| PLUGINS.contains(&base(word)));
    let rest = program.map_or(&[][..], |at| &command[at..]);
    let is_said = matches!(command.first(), Some(&("echo" | "printf")));
    !is_said && (rest.contains(&"install") || rest.contains(&"remove"))
}

/// The script with the manager before its last command, and that command. `None` if it is not certain
/// that this command starts the engine, and does nothing else.
fn split_script(script: &str) -> Option<(String, Vec<String>)> {
    let mut script = script.trim_end();
    loop {
        let line = script.rfind('\n').map_or(0, |newline| newline + 1);
        if !script[line..].trim_start().starts_with('#') {
            break;
        }
        script = script[..line].trim_end();
    }
    let behind = |separator: &str| script.rfind(separator).map(|at| at + separator.len());
    let start = ["\n", ";", "&&"].into_iter().filter_map(behind).max()?;
    let (before, last) = script.split_at(start);
    let command = last.trim();
    let command = command.strip_prefix("exec ").unwrap_or(command).trim_start();
    // Without quotes and brackets it is no part of something that has begun before.
    let is_simple =
        !command.contains(['\'', '"', '`', '&', '|', '<', '>', '(', ')', '{', '}', '#', '\\']);
    let continues = before.trim_end_matches(['\n', '\r']).ends_with('\\') || before.contains("<<");
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let starts_engine = words.iter().any(|word| STARTS.contains(&base(word)));
    let sets_variable = words.first()?.contains('=');
    if !is_simple || continues || !starts_engine || sets_variable {
        return None;
    }
    let space = &last[..last.len() - last.trim_start().len()];
    Some((format!("{before}{space}exec {PROGRAM} run -- {command}\n"), words))
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

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
