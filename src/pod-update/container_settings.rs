//! Settings of the engine that its container gives by variables and arguments: they win over the file.

use serde_json::Value;

use crate::coordinated::decisive;
use crate::settings::Settings;

/// Prefix of variables in which the official image of Elasticsearch names a setting that is no name
/// of a variable.
const OF_ELASTICSEARCH: &str = "ES_SETTING_";

/// Variables of images that are named otherwise than their settings: OpenSearch's and Bitnami's.
const OF_IMAGES: [(&str, &str); 5] = [
    ("DISABLE_SECURITY_PLUGIN", "plugins.security.disabled"),
    ("ELASTICSEARCH_CLUSTER_NAME", "cluster.name"),
    ("ELASTICSEARCH_TRANSPORT_PORT_NUMBER", "transport.port"),
    ("OPENSEARCH_CLUSTER_NAME", "cluster.name"),
    ("OPENSEARCH_TRANSPORT_PORT_NUMBER", "transport.port"),
];

/// The settings that [`crate::needs_coordinated`] reads, as this container of a template gives them. A value that the
/// template does not have itself is not known.
#[must_use]
pub fn container_settings(template: &Value, container: &str) -> Settings {
    let mut found = Settings::new();
    let containers = template["spec"]["containers"].as_array();
    let Some(container) =
        containers.into_iter().flatten().find(|one| one["name"].as_str() == Some(container))
    else {
        return found;
    };
    for variable in container["env"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str())
            && let Some(setting) = setting_of(name)
        {
            found.insert(setting, value.trim().to_owned());
        }
    }
    let lists = ["command", "args"].map(|list| container[list].as_array());
    let texts = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
    // A shell has several words in one.
    for word in texts.flat_map(str::split_whitespace) {
        let word = word.trim_matches(['"', '\'']);
        let word = word.strip_prefix("-E").unwrap_or(word).trim_matches(['"', '\'']);
        if let Some((name, value)) = word.split_once('=') {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    found.retain(|_, value| !value.contains("$(") && !value.contains("${"));
    decisive(&found)
}

/// The setting that a variable of this name gives.
fn setting_of(variable: &str) -> Option<String> {
    if let Some((_, setting)) = OF_IMAGES.iter().find(|(name, _)| *name == variable) {
        return Some((*setting).to_owned());
    }
    match variable.strip_prefix(OF_ELASTICSEARCH) {
        Some(rest) => {
            let words: Vec<String> =
                rest.split("__").map(|word| word.replace('_', ".").to_lowercase()).collect();
            Some(words.join("_"))
        }
        None => variable.contains('.').then(|| variable.to_owned()),
    }
}
