//! The environment as data, and a check for mistyped names in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Variables of the client commands, and those that the manager sets itself.
const NO_OPTIONS: [&str; 8] = [
    "STAYPUT_RUN",
    "STAYPUT_HAND_OVER",
    "STAYPUT_SOCKET",
    "STAYPUT_URL",
    "STAYPUT_TOKEN_FILE",
    "STAYPUT_CA",
    "STAYPUT_CERT",
    "STAYPUT_KEY",
];

/// The variables whose names begin with `STAYPUT_`, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Selects the variables with our prefix.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut ours = BTreeMap::new();
        for (name, value) in variables {
            if let Ok(name) = name.into_string()
                && name.starts_with("STAYPUT_")
            {
                ours.insert(name, value);
            }
        }
        Self(ours)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The environment of this process.
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os())
    }

    /// The value of one variable, also an empty one.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Names of the variables that no option reads, except those with an `is_option` name.
    pub(super) fn unknown(&self, is_option: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(move |name| {
            !is_option(name) && !NO_OPTIONS.contains(name) && !is_service_link(name)
        })
    }
}

/// True for a variable of a service: Kubernetes puts the address of every service into every container. A
/// service named `stayput-reconciler` makes `STAYPUT_RECONCILER_PORT_443_TCP_ADDR` and the like.
fn is_service_link(name: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || (name.contains("_PORT_") && (name.contains("_TCP") || name.contains("_UDP")))
}

/// Splits a list at commas and newlines; a newline at the end adds no empty item.
pub(super) fn split(value: &OsStr) -> Vec<OsString> {
    let bytes = value.as_bytes();
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes
        .split(|byte| matches!(byte, b',' | b'\n'))
        .map(|item| OsString::from_vec(item.trim_ascii().to_vec()))
        .collect()
}
