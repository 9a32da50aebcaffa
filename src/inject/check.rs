//! Checks of the values of options.

use stayput_pod_spec::object_name;

/// The name of a cluster: that of a Secret follows from it.
///
/// # Errors
/// The form to write instead.
pub fn cluster(text: &str) -> Result<String, String> {
    object_name(text)
}

/// A word of the engine's command.
///
/// # Errors
/// The form to write instead.
pub fn word(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("a word of the command is not empty".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// An object as findings name it.
///
/// # Errors
/// The form to write instead.
pub fn object(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((kind, object)) if kind.starts_with(char::is_uppercase) => {
            object_name(object).map(|_| text.to_owned())
        }
        _ => Err("write KIND/NAME, as in StatefulSet/logs".to_owned()),
    }
}

/// The name of an image.
///
/// # Errors
/// The form to write instead.
pub fn image(text: &str) -> Result<String, String> {
    let is_allowed = |one: char| one.is_ascii_alphanumeric() || "./:@_-[]".contains(one);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[')
        && text.chars().all(is_allowed)
        && !text.ends_with(['/', ':', '@'])
    {
        Ok(text.to_owned())
    } else {
        Err("write it as REPOSITORY:TAG or REPOSITORY@DIGEST".to_owned())
    }
}

/// The URL of `stayput run --ready`.
///
/// # Errors
/// The form to write instead.
pub fn ready(text: &str) -> Result<String, String> {
    let usage = "write http://HOST:PORT/PATH, https://HOST:PORT/PATH or tcp://HOST:PORT";
    let (scheme, rest) = text.split_once("://").ok_or(usage)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(
            "a password in the URL can be read by everybody: give it by --ready-auth".to_owned()
        );
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_right = !host.is_empty()
        && text.chars().all(|one| one.is_ascii_graphic())
        && match scheme {
            "http" | "https" => port.is_none_or(is_port),
            "tcp" => port.is_some_and(is_port) && matches!(path, "" | "/"),
            _ => false,
        };
    if is_right { Ok(text.to_owned()) } else { Err(usage.to_owned()) }
}
