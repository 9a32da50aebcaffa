//! How the manager asks the engine if it is ready.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::reachability::{Reachability, lets_everybody_in, variable};
use crate::finding::ObjectIssue;
use crate::options::Options;
use crate::probe::{Authority, Login};

const URL: &str = "STAYPUT_READY";
const LOGIN: &str = "STAYPUT_READY_AUTH";
const AUTHORITY: &str = "STAYPUT_READY_CA";
/// The volumes of the Secrets. Each is mounted at its name.
const LOGIN_VOLUME: &str = "stayput-ready-auth";
const AUTHORITY_VOLUME: &str = "stayput-ready-ca";

/// URL to ask, and the Secrets for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ready {
    pub(crate) url: String,
    pub(crate) login: Option<Login>,
    pub(crate) authority: Option<Authority>,
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
    let ready = Ready::new(url, options);
    found.extend(ready.problem(asked));
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

pub(crate) fn health(has_tls: bool, port: u16) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}/_cluster/health")
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

impl Ready {
    /// The check of this URL, with the Secrets of the options.
    pub(crate) fn new(url: String, options: &Options) -> Self {
        Self { url, login: options.ready_auth.clone(), authority: options.ready_ca.clone() }
    }

    /// An error that `stayput run` would refuse, or a note.
    pub(crate) fn problem(&self, asked: Asked<'_>) -> Option<ObjectIssue> {
        let https = health(true, asked.reached.port);
        let has_authority = self.authority.is_some() || sets_authority(asked.container);
        if self.url.is_empty() {
            return None;
        }
        if self.authority.is_some() && !self.url.starts_with("https://") {
            return Some(ObjectIssue::error(
                asked.field,
                format!("{} has no certificate that --ready-ca could prove", self.url),
                format!("Leave out --ready-ca, or ask over TLS: --ready {https}"),
            ));
        }
        self.login.as_ref()?;
        if !self.is_http() {
            return Some(ObjectIssue::error(
                asked.field,
                format!("{} asks for no user, so --ready-auth is of no use", self.url),
                format!("Leave out --ready-auth, or ask the engine: --ready {https}"),
            ));
        }
        let is_proven = has_authority && self.url.starts_with("https://");
        if !self.is_loopback() && !is_proven {
            return Some(ObjectIssue::error(
                asked.field,
                format!("a password would be sent to {}, and nothing proves who gets it", self.url),
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

    pub(crate) fn is_http(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        };
        let host = host.unwrap_or_default();
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// The variables of `stayput run`.
    pub(super) fn variables(&self) -> Vec<Value> {
        let value = |name: &str, value: String| json!({ "name": name, "value": value });
        let at = |volume: &str| format!("/{volume}");
        let login = self.login.as_ref().map(|one| value(LOGIN, one.path(&at(LOGIN_VOLUME))));
        let authority = self.authority.as_ref();
        let authority = authority.map(|one| value(AUTHORITY, one.path(&at(AUTHORITY_VOLUME))));
        [value(URL, self.url.clone())].into_iter().chain(login).chain(authority).collect()
    }

    /// The names of the volumes.
    pub(super) fn mounts(&self) -> Vec<&'static str> {
        let login = self.login.as_ref().map(|_| LOGIN_VOLUME);
        login.into_iter().chain(self.authority.as_ref().map(|_| AUTHORITY_VOLUME)).collect()
    }

    pub(super) fn volumes(&self) -> Vec<Value> {
        let named = |name: &str, mut volume: Value| {
            volume["name"] = json!(name);
            volume
        };
        let login = self.login.as_ref().map(|login| named(LOGIN_VOLUME, login.volume()));
        let authority = self.authority.as_ref().map(|one| named(AUTHORITY_VOLUME, one.volume()));
        login.into_iter().chain(authority).collect()
    }
}
