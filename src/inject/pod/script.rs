//! Scripts of a shell that end with the engine's start.

use super::command::PROGRAM;

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
pub(super) fn changes_plugins(script: &str) -> bool {
    let script = script.replace("\\\n", " ").replace(['\'', '"'], "");
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut inside_if = 0;
    for list in lines.flat_map(|line| line.split(';')) {
        let mut is_asked = list.contains("||");
        for part in list.split("&&") {
            let pipe: Vec<Vec<&str>> =
                part.split('|').map(|command| words(command, &mut inside_if)).collect();
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
fn words<'a>(command: &'a str, inside_if: &mut usize) -> Vec<&'a str> {
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
pub(super) fn split(script: &str) -> Option<(String, Vec<String>)> {
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
