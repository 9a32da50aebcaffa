//! The grammar of label selectors: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`.

use serde_json::Value;

/// One condition on one label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also true where the label is missing.
    NotIn(Vec<String>),
}

impl Requirement {
    pub(super) fn matches(&self, labels: &Value) -> bool {
        let value = labels[&self.key].as_str();
        match &self.rule {
            Rule::Exists => value.is_some(),
            Rule::Absent => value.is_none(),
            Rule::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Rule::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
        }
    }
}

/// All requirements, or the message of the server's answer.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let parts = split(text).ok_or_else(|| format!("unable to parse requirement: {text:?}"))?;
    parts.into_iter().filter(|part| !part.is_empty()).map(requirement).collect()
}

/// Splits at the commas that are not between parentheses.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if open => return None,
            '(' => open = true,
            ')' if !open => return None,
            ')' => open = false,
            ',' if !open => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    (!open).then_some(parts)
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let made = |key: &str, rule| {
        if is_key(key.trim()) {
            Ok(Requirement { key: key.trim().to_owned(), rule })
        } else {
            Err(format!("unable to parse requirement: {part:?} does not name a label"))
        }
    };
    if let Some(list) = part.strip_suffix(')') {
        let (head, list) = list.split_once('(').unwrap_or((part, ""));
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        return match head.trim().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => made(key, Rule::In(values)),
            Some((key, "notin")) => made(key, Rule::NotIn(values)),
            _ => Err(format!("unable to parse requirement: found {head:?}, expected: in, notin")),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return made(key, Rule::NotIn(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return made(key, Rule::In(vec![value.trim().to_owned()]));
    }
    match part.strip_prefix('!') {
        Some(key) => made(key, Rule::Absent),
        None => made(part, Rule::Exists),
    }
}

fn is_key(key: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    !key.is_empty() && key.bytes().all(letter)
}
