//! From text to trees.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag};
use serde_json::Value;

use super::node::{Entry, Kind, Node};
use super::plain::plain;

/// Deeper than any object of Kubernetes. The tree is read and compared by recursion.
const DEEPEST: usize = 200;

/// A document of a stream; its text begins with its `---`, if it has one.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: Range<usize>,
    /// Nothing, if the document is empty.
    pub(crate) root: Option<Node>,
}

/// The documents of a stream. Together their texts are the whole text.
pub(crate) fn documents(text: &str) -> Result<Vec<Document>, String> {
    let mut options = Options::default();
    // Otherwise they come where another crate of the program wants them.
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { text, parser, anchors: BTreeMap::new() };
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
    anchors: BTreeMap<usize, Value>,
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
                let value = match is_plain {
                    true => plain(&text),
                    false => Value::String(text.into_owned()),
                };
                (Node { start, end, kind: Kind::Leaf(value) }, anchor)
            }
            Event::Alias(id) => {
                let value = self.anchors.get(&id).cloned().ok_or("an alias of itself")?;
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
            self.anchors.insert(anchor, node.value());
        }
        Ok(node)
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

/// Where a `|` or `>` ends: before the newline of its last line. Empty lines behind it belong to it
/// only if they are kept (`|+`), so that they are in its value.
fn block_scalar_end(source: &str, value: &str) -> usize {
    let keeps = value.ends_with("\n\n") || value.trim_end_matches('\n').is_empty();
    if !keeps {
        return source.trim_end().len();
    }
    let source = source.trim_end_matches(' ');
    source.strip_suffix('\n').map_or(source.len(), |rest| rest.trim_end_matches('\r').len())
}
