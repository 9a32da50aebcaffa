//! Positions in the text at which children of a collection begin and end, and new children as text.

use std::ops::Range;

use serde_json::Value;

use super::change::Step;
use super::{Kind, Node};

/// A collection with children in its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position<'a> {
    pub(super) text: &'a str,
    pub(super) collection: &'a Node,
}

impl Position<'_> {
    /// Start of the child: the first character of a key, or the `-` of an item.
    pub(super) fn start(self, index: usize) -> Result<usize, String> {
        match &self.collection.kind {
            Kind::Mapping { entries, .. } => {
                entries.get(index).map(|entry| entry.start).ok_or_else(gone)
            }
            Kind::Sequence { flow: true, items } => {
                items.get(index).map(|item| item.start).ok_or_else(gone)
            }
            Kind::Sequence { flow: false, items } => {
                let item = items.get(index).ok_or_else(gone)?;
                let before = self.text[..item.start].trim_end_matches(' ');
                let dash = before.strip_suffix('-').map(str::len);
                dash.ok_or_else(|| "an item of a list does not begin behind its `-`".to_owned())
            }
            Kind::Leaf(_) => Err(gone()),
        }
    }

    /// End of the child: in block style the end of its last line, with the comment there.
    pub(super) fn end(self, index: usize) -> Result<usize, String> {
        let end = self.collection.child(index).ok_or_else(gone)?.end;
        if self.collection.is_flow() {
            return Ok(end);
        }
        let rest = &self.text[end..];
        let line = rest.find('\n').map_or(rest, |newline| &rest[..newline]);
        Ok(end + line.trim_end_matches('\r').len())
    }

    /// Range of the child itself.
    pub(super) fn child(self, index: usize) -> Result<Range<usize>, String> {
        Ok(self.start(index)?..self.end(index)?)
    }

    /// Range to cut out with a child, with the separator from the others. Comments above the child
    /// belong to it.
    pub(super) fn with_separator(self, index: usize) -> Result<Range<usize>, String> {
        let is_first_in_line = index == 0 && self.head()?.is_none();
        let end = if is_first_in_line { self.start(1)? } else { self.end(index)? };
        Ok(self.gap(index)?..end)
    }

    /// Position at which the child goes in again.
    pub(super) fn gap(self, index: usize) -> Result<usize, String> {
        match index.checked_sub(1) {
            Some(before) => self.end(before),
            None => Ok(self.head()?.unwrap_or(self.start(0)?)),
        }
    }

    /// The end of the line that the collection is below: above the comments of its first child. `None`
    /// for a first child in that line itself, as in `- name: logs`.
    fn head(self) -> Result<Option<usize>, String> {
        let start = self.start(0)?;
        let mut line = self.line(start);
        if self.collection.is_flow() || !self.text[line..start].trim().is_empty() {
            return Ok(None);
        }
        while let Some(end) = line.checked_sub(1) {
            line = self.line(end);
            let above = &self.text[line..end];
            if !above.trim().is_empty() && !above.trim_start().starts_with('#') {
                return Ok(Some(line + above.trim_end_matches('\r').len()));
            }
        }
        Ok(None)
    }

    /// Start of the line.
    fn line(self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The column of the children in block style.
    pub(super) fn column(self) -> Result<usize, String> {
        let start = self.start(0)?;
        Ok(start - self.line(start))
    }

    /// A new child as text.
    pub(super) fn write(self, step: &Step, value: &Value) -> Result<String, String> {
        Ok(match (step, self.collection.is_flow()) {
            (Step::Key(key), true) => {
                format!("{}: {}", Value::String(key.clone()), flow(value))
            }
            (_, true) => flow(value),
            (Step::Key(key), false) => self.with_newlines(&block_entry(key, value, self.column()?)),
            (_, false) => self.with_newlines(&block_item(value, self.column()?)),
        })
    }

    /// Text between the last child and a new one.
    pub(super) fn separator(self) -> Result<String, String> {
        let start = self.start(0)?;
        let line = self.line(start);
        let indent = &self.text[line..start];
        Ok(if !self.collection.is_flow() {
            self.newline().to_owned() + &" ".repeat(start - line)
        } else if !indent.is_empty() && indent.trim().is_empty() {
            // One child a line, as in JSON for people.
            format!(",{}{indent}", self.newline())
        } else {
            ", ".to_owned()
        })
    }

    fn newline(self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn with_newlines(self, new: &str) -> String {
        new.replace('\n', self.newline())
    }
}

fn gone() -> String {
    "a part of the manifest is not where it was".to_owned()
}

/// A value in one line, for a flow collection and for JSON.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::String(key.clone()), flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// `key: value`, whose first line begins at `column`.
fn block_entry(key: &str, value: &Value, column: usize) -> String {
    let key = scalar(&Value::String(key.to_owned()));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let inner = column + 2;
            format!("{key}:\n{}{}", " ".repeat(inner), entries(value, inner))
        }
        Value::Array(items) if !items.is_empty() => {
            let inner = column + 2;
            let lines = items.iter().map(|item| " ".repeat(inner) + &block_item(item, inner));
            format!("{key}:\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
        _ => format!("{key}: {}", scalar(value)),
    }
}

/// `- value`, whose first line begins at `column`.
fn block_item(value: &Value, column: usize) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            format!("- {}", entries(value, column + 2))
        }
        Value::Array(items) if !items.is_empty() => format!("- {}", flow(value)),
        _ => format!("- {}", scalar(value)),
    }
}

/// The entries of a mapping; `name` first, as people write it.
fn entries(value: &Value, column: usize) -> String {
    let fields = value.as_object().into_iter().flatten();
    let mut fields: Vec<(&String, &Value)> = fields.collect();
    fields.sort_by_key(|(key, _)| *key != "name");
    let lines = fields.into_iter().map(|(key, value)| block_entry(key, value, column));
    lines.collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(column)))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) if !text.contains(['\'', '\n', '\r', '\t']) && text.contains('"') => {
            format!("'{text}'")
        }
        _ => flow(value),
    }
}

/// True if a text needs no quotes and no reader takes it for another type.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf"];
    let first = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        || text.starts_with("./");
    let all = text.chars().all(|one| one.is_ascii_alphanumeric() || "/._-:=@ ".contains(one));
    first
        && all
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}
