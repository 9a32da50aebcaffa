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
/// Programs that refuse to install a plugin that is there.
const PLUGINS: [&str; 2] = ["opensearch-plugin", "elasticsearch-plugin"];

/// Whether a script installs a plugin without asking whether it is there. Once more in the same container
/// it would fail.
pub(super) fn installs_plugins(script: &str) -> bool {
    let mut inside_if = 0;
    for list in script.split(['\n', ';']).filter(|list| !list.trim_start().starts_with('#')) {
        let mut is_asked = list.contains("||");
        for command in list.split("&&") {
            let words: Vec<&str> = command.split_whitespace().collect();
            let count = |wanted| words.iter().filter(|word| **word == wanted).count();
            inside_if += count("if");
            let program = words.iter().position(|word| PLUGINS.contains(&base(word)));
            let installs = program.is_some_and(|at| words[at..].contains(&"install"));
            if installs && inside_if == 0 && !is_asked {
                return true;
            }
            inside_if = inside_if.saturating_sub(count("fi"));
            is_asked |= matches!(words.first(), Some(&("[" | "[[" | "test" | "!")));
        }
    }
    false
}

/// The script with the manager before its last command, and that command. Nothing if it is not sure
/// that this one starts the engine, and does nothing else.
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
