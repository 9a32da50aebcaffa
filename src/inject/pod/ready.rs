//! What answers when the engine is ready.

use serde_json::Value;

use crate::edit::Path;
use crate::finding::Found;
use crate::options::Options;

/// The engine's health, if it is known that it is served without TLS; otherwise its open port.
pub(super) fn url(
    options: &Options,
    at: &Path,
    container: &Value,
    found: &mut Vec<Found>,
) -> String {
    if let Some(chosen) = &options.ready {
        return chosen.clone();
    }
    let probe = &container["readinessProbe"]["httpGet"];
    let scheme = probe["scheme"].as_str().unwrap_or("HTTP");
    let port = port(container, &probe["port"]).unwrap_or(9200);
    if (probe.is_object() && scheme == "HTTP") || has_no_security(container) {
        return format!("http://127.0.0.1:{port}/_cluster/health");
    }
    found.push(Found::note(
        format!("{at}.readinessProbe"),
        format!("whether the engine has TLS is not known: it counts as ready when port {port} is open"),
        "To wait until it is in its cluster: --ready http://127.0.0.1:9200/_cluster/health, or https",
    ));
    format!("tcp://127.0.0.1:{port}")
}

fn port(container: &Value, port: &Value) -> Option<i64> {
    let name = match port {
        Value::Number(number) => return number.as_i64(),
        Value::String(name) => name.as_str(),
        _ => "http",
    };
    let mut ports = container["ports"].as_array()?.iter();
    ports.find(|port| port["name"].as_str() == Some(name))?["containerPort"].as_i64()
}

/// The variable with which OpenSearch's entrypoint switches its security plugin off.
fn has_no_security(container: &Value) -> bool {
    let mut all = container["env"].as_array().into_iter().flatten();
    all.any(|variable| variable["name"] == "DISABLE_SECURITY_PLUGIN" && variable["value"] == "true")
}
