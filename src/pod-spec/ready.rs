//! How a manager asks its engine if it is ready: the URL, and the Secrets for it.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::manager::variable;

/// Variable with the URL.
pub const URL: &str = "STAYPUT_READY";
/// Variable with the path of the login.
pub const LOGIN: &str = "STAYPUT_READY_AUTH";
/// Variable with the path of the CA.
pub const AUTHORITY: &str = "STAYPUT_READY_CA";

/// The volumes of the Secrets. Each is mounted at its name.
const LOGIN_VOLUME: &str = "stayput-ready-auth";
const AUTHORITY_VOLUME: &str = "stayput-ready-ca";

/// Keys of a login that the manager knows: it gets the path of their directory.
const KNOWN: [&str; 2] = ["elastic", "apiKey"];
/// Two keys of which one alone is useless.
const USER: [&str; 2] = ["username", "password"];
/// The usual key of a CA.
const CA: &str = "ca.crt";

/// URL that the manager asks, and the Secrets for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// The URL, as `stayput run --ready` takes it.
    pub url: String,
    /// Login with which the manager asks.
    pub login: Option<Login>,
    /// CA of the certificate that the engine shows.
    pub authority: Option<Authority>,
}

/// URL of an engine's health, asked in the pod itself.
pub fn health(has_tls: bool, port: u16) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}/_cluster/health")
}

impl Ready {
    /// True if the manager asks by HTTP, false if it only opens the port.
    pub fn is_http(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }

    /// True if the manager asks in its own pod.
    pub fn is_loopback(&self) -> bool {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next(),
            None => authority.split(':').next(),
        };
        let host = host.unwrap_or_default();
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    pub(crate) fn variables(&self) -> Vec<Value> {
        let mut all = vec![variable(URL, &self.url)];
        all.extend(self.login.as_ref().map(|login| {
            let is_key = |key: &&String| !KNOWN.contains(&key.as_str());
            let key = login.key.as_ref().filter(is_key).map(|key| format!("/{key}"));
            variable(LOGIN, &format!("/{LOGIN_VOLUME}{}", key.unwrap_or_default()))
        }));
        all.extend(self.authority.as_ref().map(|authority| {
            variable(AUTHORITY, &format!("/{AUTHORITY_VOLUME}/{}", authority.key))
        }));
        all
    }

    /// The names of the volumes that the engine's container mounts.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = &'static str> + use<> {
        let login = self.login.as_ref().map(|_| LOGIN_VOLUME);
        login.into_iter().chain(self.authority.as_ref().map(|_| AUTHORITY_VOLUME))
    }

    pub(crate) fn volumes(&self) -> Vec<Value> {
        let named = |name: &str, mut volume: Value| {
            volume["name"] = json!(name);
            volume
        };
        let login = self.login.as_ref().map(|login| {
            let source = Source::Secret(login.secret.clone());
            let volume = match &login.key {
                Some(key) => source.key_volume(key),
                None => source.volume(),
            };
            named(LOGIN_VOLUME, volume)
        });
        // The key of the certificate may be in the same Secret, and is not needed.
        let authority = self.authority.as_ref();
        let authority =
            authority.map(|one| named(AUTHORITY_VOLUME, one.source.key_volume(&one.key)));
        login.into_iter().chain(authority).collect()
    }
}

/// Secret with the manager's login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    secret: String,
    key: Option<String>,
}

impl Login {
    /// Reads `secret/NAME`, a Secret that a SearchCluster can name as well (`username` and `password`,
    /// `apiKey`, or `elastic`), or `secret/NAME/KEY`, where KEY has the value that `stayput run
    /// --ready-auth` takes.
    ///
    /// # Errors
    /// The form to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usage = "write secret/NAME, with the keys username and password, apiKey, or elastic; or \
                     secret/NAME/KEY, where KEY has USER:PASSWORD or an Authorization header";
        if text.starts_with("configmap/") {
            return Err(format!("a password belongs into a Secret: {usage}"));
        }
        let (secret, key) = name_and_key(text, "secret").ok_or(usage)?;
        if key.is_some_and(|key| USER.contains(&key)) {
            return Err(format!("both username and password are needed: write secret/{secret}"));
        }
        Ok(Self { secret: secret.to_owned(), key: key.map(str::to_owned) })
    }

    /// The login in a Secret, or in one key of it.
    pub fn of(secret: &str, key: Option<&str>) -> Self {
        Self { secret: secret.to_owned(), key: key.map(str::to_owned) }
    }
}

/// The CA of the engine's certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    source: Source,
    key: String,
}

impl Authority {
    /// Reads `secret/NAME`, `configmap/NAME`, or these with `/KEY`; without it the key is `ca.crt`.
    ///
    /// # Errors
    /// The form to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usage = "write secret/NAME or configmap/NAME, with the key ca.crt; or secret/NAME/KEY or \
                     configmap/NAME/KEY";
        let (source, key) = match name_and_key(text, "secret") {
            Some((name, key)) => (Source::Secret(name.to_owned()), key),
            None => {
                let (name, key) = name_and_key(text, "configmap").ok_or(usage)?;
                (Source::ConfigMap(name.to_owned()), key)
            }
        };
        Ok(Self { source, key: key.unwrap_or(CA).to_owned() })
    }

    /// The CA in `ca.crt` of a Secret.
    pub fn of(secret: &str) -> Self {
        Self { source: Source::Secret(secret.to_owned()), key: CA.to_owned() }
    }
}

/// A Secret or a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A Secret of this name.
    Secret(String),
    /// A ConfigMap of this name.
    ConfigMap(String),
}

impl Source {
    /// Reads `secret/NAME` or `configmap/NAME`.
    ///
    /// # Errors
    /// The form to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some(("secret", name)) => Ok(Self::Secret(object_name(name)?)),
            Some(("configmap", name)) => Ok(Self::ConfigMap(object_name(name)?)),
            _ => Err("write secret/NAME or configmap/NAME".to_owned()),
        }
    }

    /// The source as in a volume of a pod.
    pub fn volume(&self) -> Value {
        match self {
            Self::Secret(name) => json!({ "secret": { "secretName": name } }),
            Self::ConfigMap(name) => json!({ "configMap": { "name": name } }),
        }
    }

    /// One key of the source, as in a volume of a pod.
    fn key_volume(&self, key: &str) -> Value {
        let items = json!([{ "key": key, "path": key }]);
        match self {
            Self::Secret(name) => json!({ "secret": { "secretName": name, "items": items } }),
            Self::ConfigMap(name) => json!({ "configMap": { "name": name, "items": items } }),
        }
    }
}

/// Reads `KIND/NAME` or `KIND/NAME/KEY`.
fn name_and_key<'a>(text: &'a str, kind: &str) -> Option<(&'a str, Option<&'a str>)> {
    let rest = text.strip_prefix(kind)?.strip_prefix('/')?;
    let (name, key) = match rest.split_once('/') {
        Some((name, key)) => (name, Some(key)),
        None => (rest, None),
    };
    let is_key = |key: &str| {
        let allowed = |one: char| one.is_ascii_alphanumeric() || "-._".contains(one);
        !key.is_empty() && key.chars().all(allowed)
    };
    (object_name(name).is_ok() && key.is_none_or(is_key)).then_some((name, key))
}

/// The name of an object in Kubernetes.
///
/// # Errors
/// The form to write instead.
pub fn object_name(text: &str) -> Result<String, String> {
    let is_inner = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    let is_label = |part: &str| {
        !part.is_empty()
            && part.chars().all(is_inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if text.len() <= 253 && text.split('.').all(is_label) {
        Ok(text.to_owned())
    } else {
        Err("a name in Kubernetes has lower case letters, digits, - and . only".to_owned())
    }
}
