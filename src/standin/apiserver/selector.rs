//! `labelSelector` and `fieldSelector`: which objects a list or watch is about.

use serde_json::Value;

use super::catalog::Resource;
use super::failure::Failure;

/// All of these must be true.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

impl Selector {
    /// Reads both; absent ones select everything.
    pub(super) fn parse(
        resource: &Resource,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Failure> {
        let labels = parse_labels(labels.unwrap_or_default()).map_err(Failure::bad_request)?;
        let fields =
            parse_fields(resource, fields.unwrap_or_default()).map_err(Failure::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything is selected.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object, as stored, is selected.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|requirement| requirement.matches(labels))
            && self.fields.iter().all(|field| field.matches(object))
    }
}

// The grammar of field selectors, and which fields each kind can be selected by.

/// One condition on one field.
#[derive(Debug, Clone)]
struct Field {
    /// The path of the field in the stored object.
    pointer: String,
    value: String,
    equal: bool,
}

/// In addition to `metadata.name` and `metadata.namespace`: storage and field.
const FIELDS: [(&str, &[&str]); 4] = [
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
        ],
    ),
    ("secrets", &["type"]),
    ("namespaces", &["status.phase"]),
];

impl Field {
    fn matches(&self, object: &Value) -> bool {
        let value = object.pointer(&self.pointer).and_then(Value::as_str).unwrap_or_default();
        (value == self.value) == self.equal
    }
}

/// All conditions, or the message of the server's answer.
fn parse_fields(resource: &Resource, text: &str) -> Result<Vec<Field>, String> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| field_condition(resource, part))
        .collect()
}

fn field_condition(resource: &Resource, part: &str) -> Result<Field, String> {
    let (name, value, equal) = if let Some((name, value)) = part.split_once("!=") {
        (name, value, false)
    } else if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (name, value, true)
    } else {
        return Err(format!("invalid selector: '{part}'; can't understand '{part}'"));
    };
    // The newer API of events has another name for it.
    let name = match name.split_once('.') {
        Some(("regarding", rest)) if !resource.group.is_empty() => format!("involvedObject.{rest}"),
        _ => name.to_owned(),
    };
    let general = ["metadata.name", "metadata.namespace"];
    let special = FIELDS.iter().filter(|(storage, _)| *storage == resource.storage);
    if !general.iter().chain(special.flat_map(|(_, names)| *names)).any(|known| *known == name) {
        return Err(format!("field label not supported: {name}"));
    }
    Ok(Field { pointer: format!("/{}", name.replace('.', "/")), value: value.to_owned(), equal })
}

// The grammar of label selectors: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`.

/// One condition on one label.
#[derive(Debug, Clone, PartialEq)]
struct Requirement {
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
    fn matches(&self, labels: &Value) -> bool {
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
fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
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
