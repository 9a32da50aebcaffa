//! Reads single values, the environment, and the pod's identity.
//!
//! A message about a value follows the option's name, so it does not repeat it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use nix::sys::signal::Signal;
use tracing::level_filters::LevelFilter;

use crate::config_watch::{ConfigDir, Stage};
use crate::lifecycle::OnExit;
use crate::supervisor::Probe;
use stayput_api::Pod;
use stayput_http::jwt::Scopes;

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Signals that the C library uses for its threads.
const RESERVED: [i32; 2] = [32, 33];
/// Signals that a process ignores, or that only hold it, unless it says otherwise.
const ENDS_NOTHING: [Signal; 7] = [
    Signal::SIGCHLD,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
];

/// Reads a signal: `TERM`, `SIGTERM` or `15`.
pub(super) fn signal(text: &str) -> Result<i32, String> {
    let number = text.parse::<i32>().ok().filter(|number| (1..=64).contains(number));
    let number = number.or_else(|| {
        let name = text.to_ascii_uppercase();
        let name = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
        name.parse::<Signal>().ok().map(|signal| signal as i32)
    });
    match number {
        Some(number) if [Signal::SIGKILL as i32, Signal::SIGSTOP as i32].contains(&number) => {
            Err(format!("{text:?} gives the engine no chance to end: use TERM, INT or QUIT"))
        }
        Some(number) if ENDS_NOTHING.map(|signal| signal as i32).contains(&number) => {
            Err(format!("{text:?} ends no process: use TERM, INT or QUIT"))
        }
        Some(number) if RESERVED.contains(&number) => Err(format!(
            "{text:?} is a signal the C library keeps for itself: use TERM, INT or QUIT"
        )),
        Some(number) => Ok(number),
        None => Err(format!("{text:?} is no signal: write TERM, SIGTERM or 15")),
    }
}

pub(super) fn on_exit(text: &str) -> Result<OnExit, String> {
    match text {
        "exit" => Ok(OnExit::Exit),
        "restart" => Ok(OnExit::Restart),
        "hold" => Ok(OnExit::Hold),
        _ => Err(format!("{text:?} is none of exit, restart and hold")),
    }
}

pub(super) fn exit_code(text: &str) -> Result<i32, String> {
    text.parse::<u8>()
        .map(i32::from)
        .map_err(|_| format!("{text:?} is no exit code: write a number from 0 to 255"))
}

pub(super) fn uid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no user id: write a number"))
}

pub(super) fn log_level(text: &str) -> Result<LevelFilter, String> {
    match text {
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(format!("{text:?} is none of error, warn, info, debug and trace")),
    }
}

pub(crate) fn glob(text: &str) -> Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|error| {
        format!("{text:?} is no pattern: {} at character {}", error.msg, error.pos)
    })
}

/// Reads `NAME=read` or `NAME=control`. Split at the last `=`, for a name may hold one.
pub(super) fn grant(text: &str) -> Result<(String, Scopes), String> {
    match text.rsplit_once('=') {
        Some((name, scope)) if !name.is_empty() => Ok((name.to_owned(), scope.parse()?)),
        _ => Err(format!("{text:?} has no scope: write NAME=read or NAME=control")),
    }
}

/// Reads `DIR` or `NAME=DIR`. In a directory's own path, a `=` comes after a `/`; a name has no `/`.
pub(crate) fn config_dir(text: &str) -> Result<ConfigDir, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => (Some(name), path),
        Some(_) | None => (None, text),
    };
    if let Some(name) = name {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return Err(format!(
                "{name:?} is no name for a directory: use letters, digits, dots, dashes and \
                 underscores, and no dot in front"
            ));
        }
    }
    if path.is_empty() {
        return Err(format!("{text:?} names no directory"));
    }
    Ok(ConfigDir { name: name.map(str::to_owned), path: path.into() })
}

/// Reads the same text as [`config_dir`], with an absolute path.
pub(super) fn mounted_dir(text: &str) -> Result<ConfigDir, String> {
    let ConfigDir { name, path } = config_dir(text)?;
    Ok(ConfigDir { name, path: self::path(&path.to_string_lossy())? })
}

/// Reads `SRC=DST`.
pub(super) fn stage(text: &str) -> Result<Stage, String> {
    match text.split_once('=') {
        Some((source, target)) => Ok(Stage { source: path(source)?, target: path(target)? }),
        None => Err(format!(
            "{text:?} has no target: write SRC=DST, where DST is what the engine reads"
        )),
    }
}

/// Reads a path. A relative one is resolved against the working directory, here and once, so that
/// messages, status and rules between options name a path in one way.
pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if text.is_empty() {
        return Err("a path is empty".into());
    }
    if path.is_absolute() {
        // Rebuilt from its parts, so that `/config/` and `/config` are equal.
        return Ok(path.components().collect());
    }
    let mut resolved = std::env::current_dir().map_err(|error| {
        format!("{text:?} is relative, and the working directory is not known: {error}")
    })?;
    let mut parts = path.components().peekable();
    while let Some(part @ (Component::CurDir | Component::ParentDir)) = parts.peek() {
        // The kernel's name of the working directory has no links, so its parent is the shorter path.
        if *part == Component::ParentDir {
            resolved.pop();
        }
        parts.next();
    }
    resolved.extend(parts);
    Ok(resolved)
}

/// Reads an `http`, `https` or `tcp` URL.
pub(super) fn probe(text: &str) -> Result<Probe, String> {
    let wrong = || {
        format!(
            "{text:?} is no URL of a probe: write http://HOST:PORT/PATH, https://… or \
             tcp://HOST:PORT"
        )
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(
            "a password in the URL can be read by all users: put it into a file, and give that with \
             --ready-auth"
                .into(),
        );
    }
    let after_host = uri.authority().and_then(|authority| authority.as_str().strip_prefix(host));
    if uri.port_u16().is_none() && after_host.is_some_and(|text| !matches!(text, "" | ":")) {
        return Err(wrong());
    }
    let tls = uri.scheme_str() == Some("https");
    match uri.scheme_str() {
        Some("http" | "https") => {
            let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
            let path = uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
            Ok(Probe::Http { address: format!("{host}:{port}"), path, tls, ca: None, auth: None })
        }
        Some("tcp") if matches!(uri.path(), "" | "/") => {
            let port = uri.port_u16().filter(|port| *port != 0).ok_or_else(wrong)?;
            Ok(Probe::Tcp { address: format!("{host}:{port}") })
        }
        Some(_) | None => Err(wrong()),
    }
}

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

// Identity of the pod, from the environment variables of the downward API.
//
// The identity decides which tokens and requests are accepted, so an invalid value is an error,
// never replaced by a guess.

const NAMESPACE: &str = "STAYPUT_POD_NAMESPACE";
const NAME: &str = "STAYPUT_POD_NAME";
const UID: &str = "STAYPUT_POD_UID";

pub(super) const VARIABLES: [&str; 3] = [NAMESPACE, NAME, UID];

/// Reads the pod's identity; a variable that is not set leaves its field empty.
///
/// # Errors
/// A message for each variable whose value cannot be right.
pub(super) fn read_pod(environment: &Environment) -> Result<Pod, Vec<String>> {
    let mut problems = Vec::new();
    let mut take = |variable: &str, field: &str, fits: fn(&str) -> bool| {
        let value = environment.get(variable)?;
        match value.to_str().filter(|text| fits(text)) {
            Some(text) => Some(text.to_owned()),
            None => {
                problems.push(format!(
                    "{variable} is {}, which is no pod's {field}: set it by the downward API \
                     (fieldRef metadata.{field}), or unset it",
                    shown(value)
                ));
                None
            }
        }
    };
    let pod = Pod {
        namespace: take(NAMESPACE, "namespace", is_label),
        name: take(NAME, "name", is_subdomain),
        uid: take(UID, "uid", is_uid),
    };
    if problems.is_empty() { Ok(pod) } else { Err(problems) }
}

/// A value for a message: quoted and shortened.
fn shown(value: &OsStr) -> String {
    let text = value.to_string_lossy();
    if text.is_empty() {
        return "empty".into();
    }
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// An RFC 1123 label, as namespaces are named.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// An RFC 1123 subdomain, as pods are named.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A UUID; static pods have 32 digits without dashes.
fn is_uid(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    text.split('-').all(digits) && (lengths == [8, 4, 4, 4, 12] || lengths == [32])
}
