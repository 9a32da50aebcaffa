//! An engine's settings, from its file and from its container, and those whose change needs all nodes at once: a node with
//! the old config and a node with the new one cannot be in one cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::template::{container, elements};

/// Settings by their full names: `cluster.name`. A list has its elements with commas between them.
pub type Settings = BTreeMap<String, String>;

/// An engine and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineVersion {
    /// Elasticsearch, major and minor version.
    Elasticsearch(u32, u32),
    /// OpenSearch, major and minor version.
    OpenSearch(u32, u32),
}

/// The settings of a file that was read as YAML, nested or flat or both. A setting without a value
/// is left out.
pub fn settings(file: &Value) -> Settings {
    let mut found = Settings::new();
    descend("", file, &mut found);
    found
}

fn descend(prefix: &str, value: &Value, found: &mut Settings) {
    let text = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                descend(&format!("{prefix}{dot}{name}"), value, found);
            }
            return;
        }
        Value::Array(list) => list.iter().filter_map(text).collect::<Vec<_>>().join(","),
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => text(value).unwrap_or_default(),
    };
    found.insert(prefix.to_owned(), text);
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

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

/// The settings that [`needs_coordinated`] reads, as this container of a template gives them. A value that the
/// template does not have itself is not known.
#[must_use]
pub fn container_settings(template: &Value, name: &str) -> Settings {
    let mut found = Settings::new();
    let Some(container) = container(template, name) else { return found };
    for variable in elements(&container["env"]) {
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

/// A setting whose change needs all nodes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The setting, by its full name.
    pub setting: &'static str,
    /// Effective value with the old config.
    pub from: String,
    /// Effective value with the new config.
    pub to: String,
    /// Why the two cannot serve beside each other; goes after "since".
    pub why: &'static str,
}

/// The settings whose change may need all nodes at once, each with the reason.
const ROWS: [(&str, &str); 9] = [
    ("cluster.name", "a node does not join a cluster of another name"),
    ("transport.port", "nodes are looked for at this port"),
    ("discovery.type", "a node of its own and a node of a cluster do not find each other"),
    ("xpack.security.enabled", "a node with security refuses the requests of a node without it"),
    (
        "xpack.security.transport.ssl.enabled",
        "a node with TLS and a node without it cannot talk to each other",
    ),
    ("xpack.security.fips_mode.enabled", "nodes must have the same mode"),
    (
        "xpack.license.self_generated.type",
        "up to 7.0 the licence turns security, and with it TLS between nodes, on or off",
    ),
    (
        "plugins.security.disabled",
        "a node with security and a node without it cannot talk to each other",
    ),
    (DUAL, "a node with TLS and a node without it cannot talk to each other"),
];

/// The setting that OpenSearch's dual mode makes harmless.
const DUAL: &str = "plugins.security.ssl.transport.enabled";

/// Effective value of a setting of the table; `None` if it has no effect with this engine and config.
fn in_effect(setting: &str, settings: &Settings, engine: EngineVersion) -> Option<String> {
    let of_elastic = matches!(engine, EngineVersion::Elasticsearch(..));
    let text = match setting {
        "cluster.name" => {
            let default = if of_elastic { "elasticsearch" } else { "opensearch" };
            first(settings, &["cluster.name"]).unwrap_or(default)
        }
        "transport.port" => {
            first(settings, &["transport.port", "transport.tcp.port"]).unwrap_or("9300-9400")
        }
        // The others find the same nodes in different ways.
        "discovery.type" if first(settings, &["discovery.type"]) == Some("single-node") => {
            "single-node"
        }
        "discovery.type" => "cluster",
        "xpack.security.enabled" if of_elastic => truth(security(settings, engine)),
        "xpack.security.transport.ssl.enabled" if of_elastic => {
            truth(is_true(settings, setting, false) && security(settings, engine))
        }
        "xpack.security.fips_mode.enabled" if of_elastic => {
            truth(is_true(settings, setting, false))
        }
        "xpack.license.self_generated.type" => match engine {
            EngineVersion::Elasticsearch(6, _) | EngineVersion::Elasticsearch(7, 0) => {
                if licensed_security(settings, engine) {
                    "security"
                } else {
                    "no security"
                }
            }
            EngineVersion::Elasticsearch(..) | EngineVersion::OpenSearch(..) => return None,
        },
        "plugins.security.disabled" if !of_elastic => {
            truth(first(settings, &[setting, "opendistro_security.disabled"]) == Some("true"))
        }
        DUAL if !of_elastic => {
            let names = [DUAL, "opendistro_security.ssl.transport.enabled"];
            truth(first(settings, &names) != Some("false"))
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// Every name that the table reads.
const NAMES: [&str; 14] = [
    "cluster.name",
    "discovery.type",
    "opendistro_security.disabled",
    "opendistro_security.ssl.transport.enabled",
    "opendistro_security_config.ssl_dual_mode_enabled",
    "plugins.security.disabled",
    "plugins.security.ssl.transport.enabled",
    "plugins.security_config.ssl_dual_mode_enabled",
    "transport.port",
    "transport.tcp.port",
    "xpack.license.self_generated.type",
    "xpack.security.enabled",
    "xpack.security.fips_mode.enabled",
    "xpack.security.transport.ssl.enabled",
];

/// The settings that [`needs_coordinated`] reads, which have to be remembered of a config. None of
/// them is secret.
#[must_use]
pub fn decisive(settings: &Settings) -> Settings {
    let of = |name: &&str| Some(((*name).to_owned(), settings.get(*name)?.clone()));
    NAMES.iter().filter_map(of).collect()
}

/// The settings whose change needs all nodes at once; empty if the nodes can follow one by one.
pub fn needs_coordinated(old: &Settings, new: &Settings, engine: EngineVersion) -> Vec<Reason> {
    ROWS.iter()
        .filter(|(setting, _)| !(*setting == DUAL && both_ways_are_spoken(old, new)))
        .filter_map(|(setting, why)| {
            let value = |settings| in_effect(setting, settings, engine);
            let (from, to) = (value(old)?, value(new)?);
            (from != to).then_some(Reason { setting, from, to, why })
        })
        .collect()
}

/// True if nodes talk with TLS and without: with the dual mode of OpenSearch on both sides.
fn both_ways_are_spoken(old: &Settings, new: &Settings) -> bool {
    let dual = |settings: &Settings| {
        let names = [
            "plugins.security_config.ssl_dual_mode_enabled",
            "opendistro_security_config.ssl_dual_mode_enabled",
        ];
        first(settings, &names) == Some("true")
    };
    dual(old) && dual(new)
}

/// True if security is on. Since 8.0 it is on unless it is turned off. Before, a licence of more
/// than basic turned it on where nothing was said.
fn security(settings: &Settings, engine: EngineVersion) -> bool {
    let by_default = match engine {
        EngineVersion::Elasticsearch(major, _) if major >= 8 => true,
        EngineVersion::Elasticsearch(..) => {
            let licence = first(settings, &["xpack.license.self_generated.type"]);
            matches!(licence, Some("gold" | "platinum" | "enterprise"))
        }
        EngineVersion::OpenSearch(..) => false,
    };
    is_true(settings, "xpack.security.enabled", by_default)
}

/// Up to 7.0, true if licence and settings together turn security on. From 6.8.0 on, and not in
/// 7.0, a basic licence allows it; it has to be turned on by name.
fn licensed_security(settings: &Settings, engine: EngineVersion) -> bool {
    let licence = first(settings, &["xpack.license.self_generated.type"]);
    let is_basic = licence.unwrap_or("basic") == "basic";
    let basic_allows_it = matches!(engine, EngineVersion::Elasticsearch(6, 8..));
    match first(settings, &["xpack.security.enabled"]) {
        Some("true") => !is_basic || basic_allows_it,
        Some(_) => false,
        None => !is_basic,
    }
}

fn is_true(settings: &Settings, name: &str, default: bool) -> bool {
    first(settings, &[name]).map_or(default, |value| value == "true")
}

/// Value of the first name that is set.
fn first<'a>(settings: &'a Settings, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| settings.get(*name)).map(String::as_str)
}
