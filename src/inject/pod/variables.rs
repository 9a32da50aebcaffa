//! Variables of a container, with those that their values refer to.

use serde_json::Value;

use super::reachability::variable;

/// The container's variables of these names, and those that they refer to, in the order of
/// the container.
pub(super) fn with_references(container: &Value, mut wanted: Vec<String>) -> Vec<Value> {
    let mut kept = Vec::new();
    // A value gets only what is before it.
    for variable in container["env"].as_array().into_iter().flatten().rev() {
        let name = variable["name"].as_str().unwrap_or_default();
        if wanted.iter().any(|one| one == name) {
            wanted.extend(references(value(variable)));
            kept.push(variable.clone());
        }
    }
    kept.reverse();
    kept
}

/// True if one of these variables or words refers to one that is not in the container's `env`.
pub(super) fn refer_elsewhere(container: &Value, variables: &[Value], words: &[String]) -> bool {
    let values = variables.iter().map(value).chain(words.iter().map(String::as_str));
    values.flat_map(references).any(|name| variable(container, &name).is_none())
}

fn value(variable: &Value) -> &str {
    variable["value"].as_str().unwrap_or_default()
}

/// The names in `$(NAME)`. Kubernetes turns `$$` into `$`.
pub(super) fn references(text: &str) -> Vec<String> {
    let text = text.replace("$$", "");
    let names = text.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
    names.map(|(name, _)| name.to_owned()).collect()
}
