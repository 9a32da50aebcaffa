//! How the engine of a container is reached.

use serde_json::Value;

/// The port of an engine that says nothing else.
const PORT: u16 = 9200;
/// Variables that switch TLS off: of OpenSearch's entrypoint, and Elasticsearch's settings.
const WITHOUT_TLS: [(&str, &str); 3] = [
    ("DISABLE_SECURITY_PLUGIN", "true"),
    ("xpack.security.enabled", "false"),
    ("xpack.security.http.ssl.enabled", "false"),
];

/// How an engine is reached, as far as its container says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Port of its REST API.
    pub port: u16,
    /// Whether it has TLS; none if that is not known.
    pub has_tls: Option<bool>,
}

/// How it is reached. A probe of the engine says so; one of the manager is on another port.
pub(crate) fn reached(container: &Value) -> Reached {
    let probe = &container["readinessProbe"]["httpGet"];
    let is_of_engine = probe.is_object() && probe["port"] != "stayput";
    let probe = if is_of_engine { probe } else { &Value::Null };
    let is_plain = is_of_engine && probe["scheme"].as_str().unwrap_or("HTTP") == "HTTP";
    let asked = variable(container, "STAYPUT_READY").unwrap_or_default();
    let has_tls = match () {
        () if is_plain || asked.starts_with("http://") => Some(false),
        () if WITHOUT_TLS.iter().any(|(name, value)| variable(container, name) == Some(value)) => {
            Some(false)
        }
        () if is_of_engine || asked.starts_with("https://") => Some(true),
        () => None,
    };
    Reached { port: port(container, &probe["port"]).unwrap_or(PORT), has_tls }
}

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    let mut all = container["env"].as_array()?.iter();
    all.find(|variable| variable["name"] == name)?["value"].as_str()
}

fn port(container: &Value, port: &Value) -> Option<u16> {
    let name = match port {
        Value::Number(number) => return number.as_u64().and_then(|port| port.try_into().ok()),
        Value::String(name) => name.as_str(),
        _ => "http",
    };
    let mut ports = container["ports"].as_array()?.iter();
    let port = ports.find(|port| port["name"].as_str() == Some(name))?["containerPort"].as_u64()?;
    port.try_into().ok()
}
