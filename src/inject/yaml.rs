//! YAML (and so JSON) as text that is edited: a tree that knows the place of each part in the text, and changes of
//! single parts that leave all other bytes.

mod change;
mod edit;
mod position;

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag};
use serde_json::{Number, Value};

pub(crate) use change::{Change, Path, Step, summary};
pub(crate) use edit::{Undo, apply, find, undo};

/// A value and its place in the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) start: usize,
    /// End of the value's last character. Text behind it on that line is a comment, or belongs to the
    /// collection around it.
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A scalar, or an alias of any node: nothing in it can be edited here.
    Leaf(Value),
    Sequence {
        flow: bool,
        items: Vec<Node>,
    },
    Mapping {
        flow: bool,
        entries: Vec<Entry>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Start of the key.
    pub(crate) start: usize,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Leaf(value) => value.clone(),
            Kind::Sequence { items, .. } => items.iter().map(Self::value).collect(),
            Kind::Mapping { entries, .. } => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.value())).collect(),
            ),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Kind::Mapping { entries, .. } = &self.kind else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Sequence { items, .. } => items,
            Kind::Leaf(_) | Kind::Mapping { .. } => &[],
        }
    }

    /// Number of children; a leaf has none.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::Leaf(_) => 0,
            Kind::Sequence { items, .. } => items.len(),
            Kind::Mapping { entries, .. } => entries.len(),
        }
    }

    pub(crate) fn child(&self, index: usize) -> Option<&Self> {
        match &self.kind {
            Kind::Leaf(_) => None,
            Kind::Sequence { items, .. } => items.get(index),
            Kind::Mapping { entries, .. } => entries.get(index).map(|entry| &entry.value),
        }
    }

    pub(crate) fn is_flow(&self) -> bool {
        match &self.kind {
            Kind::Leaf(_) => false,
            Kind::Sequence { flow, .. } | Kind::Mapping { flow, .. } => *flow,
        }
    }

    /// True if the key `<<`, which merges another mapping, is anywhere in the value.
    pub(crate) fn has_merge_key(&self) -> bool {
        match &self.kind {
            Kind::Leaf(_) => false,
            Kind::Sequence { items, .. } => items.iter().any(Self::has_merge_key),
            Kind::Mapping { entries, .. } => {
                entries.iter().any(|entry| entry.key == "<<" || entry.value.has_merge_key())
            }
        }
    }

    /// The first key that a mapping in the value has twice, with the keys on the way there.
    pub(crate) fn twice(&self) -> Option<String> {
        match &self.kind {
            Kind::Leaf(_) => None,
            Kind::Sequence { items, .. } => items
                .iter()
                .enumerate()
                .find_map(|(index, item)| Some(format!("[{index}].{}", item.twice()?))),
            Kind::Mapping { entries, .. } => {
                entries.iter().enumerate().find_map(|(index, Entry { key, value, .. })| {
                    if entries[..index].iter().any(|before| before.key == *key) {
                        return Some(key.clone());
                    }
                    let inner = value.twice()?;
                    let dot = if inner.starts_with('[') { "" } else { "." };
                    Some(format!("{key}{dot}{inner}"))
                })
            }
        }
    }
}

/// Maximum depth of a tree, more than any object of Kubernetes has. The tree is read and compared
/// by recursion.
const DEEPEST: usize = 200;
/// Maximum bytes of copies for all anchors and aliases of a text. An alias stands for a copy, also of a
/// value with aliases in it, so that a few lines could take all memory. etcd takes 1.5 MB for
/// one object.
const MAX_COPIED: usize = 10 << 20;

/// A document of a stream; its text begins with its `---`, if it has one.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: Range<usize>,
    /// The root; absent in an empty document.
    pub(crate) root: Option<Node>,
}

/// The documents of a stream. Together their texts are the whole text.
pub(crate) fn documents(text: &str) -> Result<Vec<Document>, String> {
    let Some(objects) = json_objects(text) else { return yaml_documents(text) };
    objects
        .into_iter()
        .map(|range| Ok(Document { root: Some(one(&text[range.clone()])?), text: range }))
        .collect()
}

/// JSON objects one after the other, as `kubectl get --output json` writes them if it is called twice: kubectl takes
/// them without a `---`. The texts of the objects are together the whole text.
fn json_objects(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let mut ends = Vec::new();
    while let Some(object) = objects.next() {
        object.ok()?;
        ends.push(objects.byte_offset());
    }
    if ends.len() < 2 {
        return None;
    }
    *ends.last_mut()? = text.len();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Some(starts.zip(&ends).map(|(start, end)| start..*end).collect())
}

fn yaml_documents(text: &str) -> Result<Vec<Document>, String> {
    let mut options = Options::default();
    // Otherwise they come where another crate of the program wants them.
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { text, parser, anchors: BTreeMap::new(), copied: 0 };
    let mut all: Vec<Document> = Vec::new();
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(..) => {
                let at = range(&span).start;
                let from = match all.last_mut() {
                    None => 0,
                    Some(before) => {
                        before.text.end = at;
                        at
                    }
                };
                reader.anchors.clear();
                let first = reader.next()?;
                let root = reader.node(first, 0)?;
                let is_empty = matches!(root.kind, Kind::Leaf(Value::Null));
                let root = (!is_empty).then_some(root);
                all.push(Document { text: from..text.len(), root });
            }
            _ => {}
        }
    }
    if all.is_empty() {
        all.push(Document { text: 0..text.len(), root: None });
    }
    Ok(all)
}

/// The only document of a text.
pub(crate) fn one(text: &str) -> Result<Node, String> {
    let mut all = documents(text)?;
    match (all.pop().and_then(|document| document.root), all.is_empty()) {
        (Some(root), true) => Ok(root),
        _ => Err("not one document".to_owned()),
    }
}

fn range(span: &Span) -> Range<usize> {
    // A parser of a `str` has byte offsets for all that it reads.
    span.byte_range().unwrap_or_default()
}

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// Values with their size.
    anchors: BTreeMap<usize, (Value, usize)>,
    /// Bytes that anchors and aliases have taken so far.
    copied: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the text ends too early".to_owned()),
        }
    }

    fn node(&mut self, (event, span): (Event<'a>, Span), depth: usize) -> Result<Node, String> {
        if depth > DEEPEST {
            return Err(format!("nested deeper than {DEEPEST} levels"));
        }
        let Range { start, end } = range(&span);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let end = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        block_scalar_end(&self.text[start..end], &text) + start
                    }
                    _ => end,
                };
                let is_plain = match tag.as_deref().map(Tag::core_suffix) {
                    None => style == ScalarStyle::Plain,
                    Some(suffix) => suffix.is_some_and(|suffix| suffix != "str"),
                };
                let value = if is_plain { plain(&text) } else { Value::String(text.into_owned()) };
                (Node { start, end, kind: Kind::Leaf(value) }, anchor)
            }
            Event::Alias(id) => {
                let (value, size) = self.anchors.get(&id).ok_or("an alias of itself")?;
                let (value, size) = (value.clone(), *size);
                self.count(size)?;
                (Node { start, end, kind: Kind::Leaf(value) }, 0)
            }
            Event::SequenceStart(style, anchor, _) => {
                (self.sequence(start, style == StructureStyle::Flow, depth)?, anchor)
            }
            Event::MappingStart(style, anchor, _) => {
                (self.mapping(start, style == StructureStyle::Flow, depth)?, anchor)
            }
            other => return Err(format!("a value is missing before {other:?}")),
        };
        if anchor > 0 {
            let value = node.value();
            let size = size(&value);
            self.count(size)?;
            self.anchors.insert(anchor, (value, size));
        }
        Ok(node)
    }

    fn count(&mut self, size: usize) -> Result<(), String> {
        self.copied = self.copied.saturating_add(size);
        if self.copied > MAX_COPIED {
            return Err(format!("its aliases stand for more than {MAX_COPIED} bytes"));
        }
        Ok(())
    }

    fn sequence(&mut self, start: usize, flow: bool, depth: usize) -> Result<Node, String> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            let next = self.next()?;
            if next.0 == Event::SequenceEnd {
                let end = items.last().map_or(start, |item| item.end);
                let end = if flow { range(&next.1).end } else { end };
                return Ok(Node { start, end, kind: Kind::Sequence { flow, items } });
            }
            items.push(self.node(next, depth + 1)?);
        }
    }

    fn mapping(&mut self, start: usize, flow: bool, depth: usize) -> Result<Node, String> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::MappingEnd => {
                    let end = entries.last().map_or(start, |entry| entry.value.end);
                    let end = if flow { range(&span).end } else { end };
                    return Ok(Node { start, end, kind: Kind::Mapping { flow, entries } });
                }
                Event::Scalar(key, ..) => {
                    let next = self.next()?;
                    let value = self.node(next, depth + 1)?;
                    let (key, start) = (key.into_owned(), range(&span).start);
                    entries.push(Entry { key, start, value });
                }
                _ => return Err(format!("a key is no text, in line {}", span.start.line())),
            }
        }
    }
}

/// Bytes of a value, roughly: of its texts, and some for each node.
fn size(value: &Value) -> usize {
    const NODE: usize = 32;
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    NODE + inner
}

/// The end of a `|` or `>` scalar: before the newline of its last line. Empty lines behind it belong to it only
/// if they are kept (`|+`), so that they are in its value.
fn block_scalar_end(source: &str, value: &str) -> usize {
    let keeps = value.ends_with("\n\n") || value.trim_end_matches('\n').is_empty();
    if !keeps {
        return source.trim_end().len();
    }
    let source = source.trim_end_matches(' ');
    source.strip_suffix('\n').map_or(source.len(), |rest| rest.trim_end_matches('\r').len())
}

/// A plain scalar as kubectl reads it: by YAML 1.1, as in goyaml.v2/resolve.go of sigs.k8s.io/yaml. So
/// `0644` and `0o644` are 420, and `yes` is true.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| float(&digits))
}

/// Parses an integer as Go does, where `0` before other digits means octal.
fn integer(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // Otherwise a second sign would be one of the digits.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let value = u64::from_str_radix(digits, base).ok()?;
    if text.starts_with('-') {
        return Some(Number::from(0i64.checked_sub_unsigned(value)?));
    }
    Some(Number::from(value))
}

/// Parses a float such as `1.5`, `.5`, `1e3`; not `inf`. One without a fraction is written as an
/// integer, as kubectl sends it.
fn float(text: &str) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !text.chars().all(|one| one.is_ascii_digit() || "+-.eE".contains(one)) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
