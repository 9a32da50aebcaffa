//! Options of the manager, as a container of a pod template gives them: as arguments of its command,
//! or as variables.

use serde_json::Value;

/// An option whose value the template does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotWritten {
    /// The argument or variable.
    pub option: String,
}

/// All values of an option that may be repeated, such as `config`; those of the command line win
/// over the variable. Empty if the template says nothing about it.
///
/// # Errors
/// The value is not in the template.
pub fn values(container: &Value, option: &str) -> Result<Vec<String>, NotWritten> {
    let argument = format!("--{option}");
    let given = arguments(container, &argument);
    if !given.is_empty() {
        return written(&argument, given);
    }
    let name = format!("STAYPUT_{}", option.to_ascii_uppercase().replace('-', "_"));
    let variables = container["env"].as_array().map_or(&[][..], Vec::as_slice).iter();
    // Of two with one name the last counts.
    let Some(variable) = variables.rev().find(|each| each["name"] == name.as_str()) else {
        return Ok(vec![]);
    };
    match variable["value"].as_str() {
        Some(list) => {
            let items = list.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty());
            written(&name, items.map(str::to_owned).collect())
        }
        None if variable["valueFrom"].is_null() => Ok(vec![]),
        None => Err(NotWritten { option: name }),
    }
}

/// Values of this argument between `run` and `--`, where the engine's command begins.
fn arguments(container: &Value, argument: &str) -> Vec<String> {
    let lists = ["command", "args"].map(|list| container[list].as_array());
    let words = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
    let mut own = words.skip_while(|word| *word != "run").take_while(|word| *word != "--");
    let mut found = Vec::new();
    while let Some(word) = own.next() {
        let value = match word.strip_prefix(argument) {
            Some("") => own.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        found.extend(value.map(str::to_owned));
    }
    found
}

/// Fails if a value has `$(NAME)`, where the kubelet puts the value of a variable.
fn written(option: &str, values: Vec<String>) -> Result<Vec<String>, NotWritten> {
    if values.iter().any(|value| value.contains("$(")) {
        Err(NotWritten { option: option.to_owned() })
    } else {
        Ok(values)
    }
}
