//! How to reach the engine of a container.

use serde_json::Value;

use super::command::words;

/// The port of an engine without another setting.
const PORT: u16 = 9200;
/// Variables that switch users and TLS off: of OpenSearch's entrypoint, and settings of the engines.
const WITHOUT_SECURITY: [(&str, &str); 3] = [
    ("DISABLE_SECURITY_PLUGIN", "true"),
    ("plugins.security.disabled", "true"),
    ("xpack.security.enabled", "false"),
];
/// The variable that tells how ECK's own readiness probe asks the engine: `http` or `https`.
const OF_ECK: &str = "READINESS_PROBE_PROTOCOL";
/// Settings of the engines that switch TLS on or off.
const TLS: [&str; 2] = ["xpack.security.http.ssl.enabled", "plugins.security.ssl.http.enabled"];

/// How to reach an engine, as far as its container says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reachability {
    /// Port of the REST API.
    pub port: u16,
    /// True if the REST API has TLS, false if not, if it is known.
    pub has_tls: Option<bool>,
}

/// How to reach the engine of a container. A probe of the engine says so; one of the manager is on
/// another port.
pub(crate) fn reachability(container: &Value) -> Reachability {
    let probe = probe_of_engine(container).unwrap_or(&Value::Null);
    let asked = value_of(container, "STAYPUT_READY").unwrap_or_default();
    let is_set = |value: &str| TLS.iter().any(|name| value_of(container, name) == Some(value));
    let has_tls = match () {
        () if is_plain(container) || asked.starts_with("http://") => Some(false),
        () if has_no_security(container) || is_set("false") => Some(false),
        () if probe.is_object() || asked.starts_with("https://") || is_set("true") => Some(true),
        () => match value_of(container, OF_ECK) {
            Some(protocol) => Some(protocol == "https"),
            None => asked_by_script(container),
        },
    };
    Reachability { port: port(container, &probe["port"]).unwrap_or(PORT), has_tls }
}

/// True if it is known that the engine needs no login.
pub(super) fn lets_everybody_in(container: &Value) -> bool {
    let probe = probe_of_engine(container).unwrap_or(&Value::Null);
    let mut headers = probe["httpHeaders"].as_array().into_iter().flatten();
    let is_login = |header: &Value| {
        header["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("authorization"))
    };
    has_no_security(container) || (is_plain(container) && !headers.any(is_login))
}

fn has_no_security(container: &Value) -> bool {
    WITHOUT_SECURITY.iter().any(|(name, value)| value_of(container, name) == Some(value))
}

/// True if the kubelet asks the engine without TLS.
fn is_plain(container: &Value) -> bool {
    let probe = probe_of_engine(container);
    probe.is_some_and(|probe| probe["scheme"].as_str().unwrap_or("HTTP") == "HTTP")
}

fn probe_of_engine(container: &Value) -> Option<&Value> {
    let probe = &container["readinessProbe"]["httpGet"];
    (probe.is_object() && probe["port"] != "stayput").then_some(probe)
}

/// True if a probe that runs a program, such as curl in pods of the OpenSearch operator, asks the pod's own engine by
/// https, false if by http. Both together prove nothing.
fn asked_by_script(container: &Value) -> Option<bool> {
    const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
    let probes = ["readinessProbe", "startupProbe", "livenessProbe"].into_iter();
    let words = probes.flat_map(|probe| words(&container[probe]["exec"]["command"]));
    let script = words.collect::<Vec<_>>().join(" ");
    let has =
        |scheme: &str| HOSTS.iter().any(|host| script.contains(&format!("{scheme}://{host}")));
    match (has("http"), has("https")) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// The Secret from which Elastic's chart gives the engine the password of its user, with `username` beside it.
pub(super) fn known_login(container: &Value) -> Option<&str> {
    let secret = &variable(container, "ELASTIC_PASSWORD")?["valueFrom"]["secretKeyRef"];
    secret["name"].as_str().filter(|_| secret["key"] == "password")
}

/// The container's variable of this name.
pub(super) fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    container["env"].as_array()?.iter().find(|variable| variable["name"] == name)
}

fn value_of<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    variable(container, name)?["value"].as_str()
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
