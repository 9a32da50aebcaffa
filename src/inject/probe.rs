//! The Secrets with which the manager asks a secured engine whether it is ready.

use serde_json::{Value, json};

use crate::check;
use crate::options::Source;

/// Keys that the manager knows: it gets the path of their directory.
const KNOWN: [&str; 2] = ["elastic", "apiKey"];
/// Two keys of which one alone is useless.
const USER: [&str; 2] = ["username", "password"];
/// The usual key of a CA.
const CA: &str = "ca.crt";

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

    /// The login in a key of a Secret.
    pub(crate) fn of(secret: String, key: &str) -> Self {
        Self { secret, key: Some(key.to_owned()) }
    }

    /// Path that the manager reads if the volume is mounted at `mounted`.
    pub(crate) fn path(&self, mounted: &str) -> String {
        match &self.key {
            Some(key) if !KNOWN.contains(&key.as_str()) => format!("{mounted}/{key}"),
            _ => mounted.to_owned(),
        }
    }

    /// The Secret as in a volume of a pod.
    pub(crate) fn volume(&self) -> Value {
        let source = Source::Secret(self.secret.clone());
        match &self.key {
            Some(key) => with_key(&source, key),
            None => source.volume(),
        }
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
    pub(crate) fn of(secret: String) -> Self {
        Self { source: Source::Secret(secret), key: CA.to_owned() }
    }

    /// Path that the manager reads if the volume is mounted at `mounted`.
    pub(crate) fn path(&self, mounted: &str) -> String {
        format!("{mounted}/{}", self.key)
    }

    /// The source as in a volume of a pod: the key of the certificate may be in the same Secret, and is
    /// not needed.
    pub(crate) fn volume(&self) -> Value {
        with_key(&self.source, &self.key)
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
    (check::name(name).is_ok() && key.is_none_or(is_key)).then_some((name, key))
}

fn with_key(source: &Source, key: &str) -> Value {
    let mut volume = source.volume();
    for source in volume.as_object_mut().into_iter().flat_map(|volume| volume.values_mut()) {
        source["items"] = json!([{ "key": key, "path": key }]);
    }
    volume
}
