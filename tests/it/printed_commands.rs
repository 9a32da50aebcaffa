//! Commands that documents and messages tell people to type are understood by the programs that they
//! name, whole, and about a namespace. Those of `doctor` are checked beside its findings.

use std::fs;
use std::path::{Path, PathBuf};

use stayput_kubectl::definition;

use crate::support::commands::problems;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// Path and text of each file with this extension in a folder, and in those below it.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let pattern = root().join(folder).join("**").join(format!("*.{extension}"));
    let paths = glob::glob(pattern.to_str().unwrap()).unwrap().map(Result::unwrap);
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    paths.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// The commands of kubectl and Helm in the blocks of a document, with continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence = None;
    for line in text.replace("\\\n", " ").lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            fence = fence.is_none().then(|| language.to_owned());
            continue;
        }
        let command = match fence.as_deref() {
            Some("sh") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        let (command, _) = command.split_once(" # ").unwrap_or((command, ""));
        if ["kubectl ", "helm "].iter().any(|program| command.starts_with(program)) {
            found.push(command.trim().to_owned());
        }
    }
    found
}

/// A page of the runbook is read at night, by somebody whose context may be in any namespace.
#[test] // proves OPERATE-5
fn commands_of_the_runbook_name_their_namespace() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in files("docs/runbook", "md") {
        for command in commands(&text) {
            count += 1;
            let found = problems(&command, definition());
            wrong.extend(found.into_iter().map(|problem| format!("{path}: {problem}")));
            let asks = ["--yes", " -y "].iter().find(|option| command.contains(*option));
            wrong.extend(
                asks.map(|option| format!("{path}: {option} skips the question: {command}")),
            );
        }
    }
    assert!(count > 100, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Other documents may say before in which namespace they are.
#[test] // proves OPERATE-5
fn commands_of_documents_are_understood() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let readme = ("README.md".to_owned(), fs::read_to_string(root().join("README.md")).unwrap());
    let documents = files("docs", "md").into_iter().chain([readme]);
    for (path, text) in documents.filter(|(path, _)| !path.starts_with("docs/runbook")) {
        for command in commands(&text) {
            count += 1;
            // A script may have quotes over several lines.
            let others =
                ["kubectl takes the namespace", "helm has no --namespace", "quotes are not"];
            let found = problems(&command, definition()).into_iter();
            let found = found.filter(|one| !others.iter().any(|other| one.starts_with(other)));
            wrong.extend(found.map(|problem| format!("{path}: {problem}")));
        }
    }
    assert!(count > 100, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The commands between backquotes in the texts of our programs, with a word for each value.
fn quoted(source: &str) -> Vec<String> {
    let (code, _) = source.split_once("#[cfg(test)]").unwrap_or((source, ""));
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.map(str::trim).collect();
    // A text that goes on in the next line.
    let code = code.join("\n").replace("\\\n", "");
    let mut found = Vec::new();
    for line in code.lines() {
        for part in line.split('`').skip(1).step_by(2).filter(|part| part.starts_with("kubectl ")) {
            let mut command = String::new();
            // An option that is left out where the object names no namespace.
            let part = part.replace("kubectl {namespace}", "kubectl --namespace a ");
            for (number, part) in part.split(['{', '}']).enumerate() {
                command += if number % 2 == 1 { "a" } else { part };
            }
            found.push(command.replace("\\\"", "\""));
        }
    }
    found
}

#[test] // proves OPERATE-5
fn commands_in_messages_are_understood() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, source) in files("src", "rs").into_iter().filter(|(path, _)| !path.contains("test"))
    {
        for command in quoted(&source) {
            count += 1;
            // A name, as in `kubectl stayput init`.
            if command.split_whitespace().count() < 4 {
                continue;
            }
            let found = problems(&command, definition()).into_iter();
            wrong.extend(found.map(|problem| format!("{path}: {problem}")));
        }
    }
    assert!(count > 10, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_cannot_be_typed_is_found() {
    let found = |line: &str| problems(line, definition()).join("\n");
    for right in [
        "kubectl -n search get pods",
        "kubectl stayput -n search status logs",
        "kubectl stayput crd | kubectl apply --server-side --force-conflicts -f -",
        "kubectl get nodes",
        "helm upgrade --namespace stayput stayput deploy/helm/stayput-reconciler",
    ] {
        assert_eq!(found(right), "", "{right}");
    }
    for (wrong, problem) in [
        ("kubectl get pods", "namespace of the context"),
        ("kubectl stayput -n search restrat logs", "unrecognized subcommand"),
        ("kubectl -n search get pods | kubectl apply", "namespace of the context"),
        ("kubectl -n search get secret 'logs", "quotes are not closed"),
        ("kubectl -n search describe pod <name>", "as redirections"),
        ("helm upgrade stayput deploy/helm", "no --namespace"),
    ] {
        assert!(found(wrong).contains(problem), "{wrong}: {}", found(wrong));
    }
}
