//! Identity of the pod, from the environment variables of the downward API.
//!
//! The identity decides which tokens and requests are accepted, so an invalid value is an error,
//! never replaced by a guess.

use std::ffi::OsStr;

use super::Environment;
use stayput_api::Pod;

const NAMESPACE: &str = "STAYPUT_POD_NAMESPACE";
const NAME: &str = "STAYPUT_POD_NAME";
const UID: &str = "STAYPUT_POD_UID";

pub(super) const VARIABLES: [&str; 3] = [NAMESPACE, NAME, UID];

/// Reads the pod's identity; a variable that is not set leaves its field empty.
///
/// # Errors
/// A message for each variable whose value cannot be right.
pub(super) fn read(environment: &Environment) -> Result<Pod, Vec<String>> {
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
