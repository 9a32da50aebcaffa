//! The part of YAML that engine configs are written in: one `key: value` a line, lists.

use super::Refusal;

/// The settings in `text`, in their order. A list becomes its items joined by commas; `${NAME}` is
/// replaced by the environment's value, as in the real engines.
pub(super) fn settings(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let (Some(item), Some((_, value))) = (line.strip_prefix("- "), settings.last_mut()) {
            if !value.is_empty() {
                value.push(',');
            }
            value.push_str(&substituted(unquoted(item))?);
            continue;
        }
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| Refusal::config(format!("malformed line [{line}]: no colon")))?;
        settings.push((key.trim().to_owned(), substituted(unquoted(value))?));
    }
    Ok(settings)
}

/// The items of a value that is a list: `[a, "b"]` or `a,b`.
pub(super) fn list(value: &str) -> impl Iterator<Item = String> {
    let items = value.trim().trim_start_matches('[').trim_end_matches(']').split(',');
    items.map(unquoted).filter(|item| !item.is_empty()).map(str::to_owned)
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

fn substituted(value: &str) -> Result<String, Refusal> {
    let mut done = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Refusal::config(format!("malformed value [{value}]: no }}")))?;
        let found = std::env::var(name)
            .map_err(|_| Refusal::config(format!("Could not resolve placeholder '{name}'")))?;
        done.push_str(before);
        done.push_str(&found);
        rest = after;
    }
    done.push_str(rest);
    Ok(done)
}
