//! Checks commands that programs and documents tell people to type. Also part of the unit tests of
//! `kubectl stayput`, which know its findings.

/// What is wrong with a line that is to be typed. `definition` has the commands of `kubectl stayput`.
pub(crate) fn problems(line: &str, definition: clap::Command) -> Vec<String> {
    let Some(words) = shlex::split(line) else {
        return vec![format!("quotes are not closed: {line}")];
    };
    let mut found = Vec::new();
    // Outside of quotes a shell takes these for a redirection from a file, and into one.
    if line.split_whitespace().any(|word| word.starts_with('<') && word.ends_with('>')) {
        found.push(format!("a shell reads <…> as redirections: {line}"));
    }
    for command in words.split(|word| ["|", "&&", "||", ";"].contains(&word.as_str())) {
        found.extend(problem(command, &definition).map(|problem| format!("{problem}: {line}")));
    }
    found
}

fn problem(words: &[String], definition: &clap::Command) -> Option<String> {
    match words.first()?.as_str() {
        "kubectl" if words.get(1).is_some_and(|word| word == "stayput") => {
            let given =
                ["kubectl-stayput"].into_iter().chain(words[2..].iter().map(String::as_str));
            let end = given.clone().position(|word| word == ">" || word == "#");
            let given = given.take(end.unwrap_or(usize::MAX));
            let error = definition.clone().try_get_matches_from(given).err()?;
            error.use_stderr().then(|| error.to_string())
        }
        "kubectl" if !is_in_a_namespace(words) && !is_cluster_wide(&words[1..]) => {
            Some("kubectl takes the namespace of the context".to_owned())
        }
        "helm" if !is_in_a_namespace(words) => Some("helm has no --namespace".to_owned()),
        _ => None,
    }
}

fn is_in_a_namespace(words: &[String]) -> bool {
    let options = ["-n", "--namespace", "-A", "--all-namespaces"];
    words.iter().any(|word| options.contains(&word.as_str()))
}

/// Whether a command of kubectl needs no namespace: its objects have one of their own, or none.
fn is_cluster_wide(words: &[String]) -> bool {
    const VERBS: [&str; 7] =
        ["cluster-info", "config", "cordon", "krew", "kustomize", "uncordon", "version"];
    const KINDS: [&str; 10] = [
        "crd",
        "customresourcedefinition",
        "customresourcedefinitions",
        "clusterrole",
        "clusterrolebinding",
        "namespace",
        "namespaces",
        "node",
        "nodes",
        "--raw",
    ];
    let mut words = words.iter().map(String::as_str);
    let is_of_files = |word: &str| ["-f", "-k", "--filename", "--kustomize"].contains(&word);
    let verb = words.by_ref().find(|word| !word.starts_with('-')).unwrap_or_default();
    VERBS.contains(&verb)
        || words
            .any(|word| is_of_files(word) || KINDS.contains(&word.split('/').next().unwrap_or("")))
}
