//! How the engine of a container is reached, and how its manager asks it if it is ready.

use serde_json::Value;
use stayput_pod_spec::{AUTHORITY, LOGIN, Ready, URL, health};

use super::command::words;
use crate::finding::ObjectIssue;
use crate::options::Options;

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
    let has_tls = if is_plain(container)
        || asked.starts_with("http://")
        || has_no_security(container)
        || is_set("false")
    {
        Some(false)
    } else if probe.is_object() || asked.starts_with("https://") || is_set("true") {
        Some(true)
    } else if let Some(protocol) = value_of(container, OF_ECK) {
        Some(protocol == "https")
    } else {
        asked_by_script(container)
    };
    Reachability { port: port(container, &probe["port"]).unwrap_or(PORT), has_tls }
}

/// True if it is known that the engine needs no login.
fn lets_everybody_in(container: &Value) -> bool {
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
fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
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

/// A container, or a node pool of the OpenSearch operator, as far as it says how to ask its engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The object that has the `env`.
    pub(crate) container: &'a Value,
    /// Field for findings.
    pub(crate) field: &'a str,
    pub(crate) reached: Reachability,
    /// True if the pod uses the network of its machine.
    pub(crate) host_network: bool,
    /// Secrets that are probably the right ones: only a note names them.
    pub(crate) login: Option<&'a str>,
    pub(crate) authority: Option<&'a str>,
}

/// The engine's health, if it is known how to ask for it; otherwise its open port.
pub(crate) fn ready(asked: Asked<'_>, options: &Options, found: &mut Vec<ObjectIssue>) -> Ready {
    let Reachability { port, has_tls } = asked.reached;
    let url = match chosen_url(asked.container, options) {
        Some(url) => url.to_owned(),
        None if has_secrets(asked.container, options) => health(has_tls != Some(false), port),
        None if has_tls == Some(false) && lets_everybody_in(asked.container) => health(false, port),
        None => {
            found.push(only_the_port(asked));
            format!("tcp://127.0.0.1:{port}")
        }
    };
    let ready = ready_of(url, options);
    found.extend(problem(&ready, asked));
    ready
}

/// The URL by the container's variable, or by the option; empty if the variable's value is elsewhere.
pub(crate) fn chosen_url<'a>(container: &'a Value, options: &'a Options) -> Option<&'a str> {
    match variable(container, URL) {
        Some(variable) => Some(variable["value"].as_str().unwrap_or_default()),
        None => options.ready.as_deref(),
    }
}

/// True if there is a Secret that only a request to the engine can use.
pub(crate) fn has_secrets(container: &Value, options: &Options) -> bool {
    let by_option = options.ready_auth.is_some() || options.ready_ca.is_some();
    by_option || sets_login(container) || sets_authority(container)
}

/// True if the container has its own variable for the login.
pub(crate) fn sets_login(container: &Value) -> bool {
    variable(container, LOGIN).is_some()
}

pub(crate) fn sets_authority(container: &Value) -> bool {
    variable(container, AUTHORITY).is_some()
}

fn only_the_port(asked: Asked<'_>) -> ObjectIssue {
    let Reachability { port, has_tls } = asked.reached;
    let what = match has_tls {
        Some(true) => "the engine has TLS, and it is not known with what to log in",
        Some(false) => "the engine has no TLS, and it is not known with what to log in",
        None => "it is unknown whether the engine has TLS",
    };
    let secrets = format!("--ready-auth secret/{}", asked.login.unwrap_or("NAME"));
    let authority = format!("--ready-ca secret/{}", asked.authority.unwrap_or("NAME"));
    let remedy = match has_tls {
        Some(true) => format!("{secrets} and {authority}"),
        Some(false) => {
            format!("{secrets}; if it asks for no user, --ready {}", health(false, port))
        }
        None => format!(
            "with TLS {secrets} and {authority}; without, and without users, --ready {}",
            health(false, port)
        ),
    };
    ObjectIssue::note(
        asked.field,
        format!("{what}: it counts as ready when port {port} is open"),
        format!("To wait until it is in its cluster: {remedy}"),
    )
}

/// The check of this URL, with the Secrets of the options.
pub(crate) fn ready_of(url: String, options: &Options) -> Ready {
    Ready { url, login: options.ready_auth.clone(), authority: options.ready_ca.clone() }
}

/// An error that `stayput run` would refuse, or a note.
pub(crate) fn problem(ready: &Ready, asked: Asked<'_>) -> Option<ObjectIssue> {
    let https = health(true, asked.reached.port);
    let has_authority = ready.authority.is_some() || sets_authority(asked.container);
    if ready.url.is_empty() {
        return None;
    }
    if ready.authority.is_some() && !ready.url.starts_with("https://") {
        return Some(ObjectIssue::error(
            asked.field,
            format!("{} has no certificate that --ready-ca could prove", ready.url),
            format!("Leave out --ready-ca, or ask over TLS: --ready {https}"),
        ));
    }
    ready.login.as_ref()?;
    if !ready.is_http() {
        return Some(ObjectIssue::error(
            asked.field,
            format!("{} asks for no user, so --ready-auth is of no use", ready.url),
            format!("Leave out --ready-auth, or ask the engine: --ready {https}"),
        ));
    }
    let is_proven = has_authority && ready.url.starts_with("https://");
    if !ready.is_loopback() && !is_proven {
        return Some(ObjectIssue::error(
            asked.field,
            format!("a password would be sent to {}, and nothing proves who gets it", ready.url),
            format!("Give --ready-ca and https, or ask on loopback: --ready {https}"),
        ));
    }
    (asked.host_network && !has_authority).then(|| {
        ObjectIssue::note(
            asked.field,
            "with hostNetwork other pods of the machine can listen on loopback, and would get the password",
            "Give the CA of the engine's certificates: --ready-ca secret/NAME",
        )
    })
}
