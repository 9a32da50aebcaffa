//! A stream of manifests: the objects in it, and the work on each.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::finding::{Finding, ObjectIssue, Severity};
use crate::kinds::{self, Passed, Plan};
use crate::options::Options;
use crate::yaml::{
    Change, Document, Node, Path, Step, Undo, apply, documents, find, one, summary, undo,
};

/// The manifests after the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The whole text.
    pub text: String,
    /// The objects that differ from the input.
    pub changed: Vec<Changed>,
    /// True if an object has an engine that can be changed, also one that has the manager already.
    pub has_engine: bool,
    /// Findings that do not prevent output.
    pub notes: Vec<Finding>,
    /// StatefulSets in which no engine was found, and why.
    pub without_engine: Vec<Finding>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// Number of the document in the file, from 1.
    pub document: usize,
    /// Kind and name, as in `StatefulSet/logs`.
    pub object: String,
    /// Fields that would be added, replaced and removed, compared with the input; for people.
    pub edits: Vec<String>,
}

/// The manifests with the manager. Objects without an engine keep every byte. Manifests that have it
/// from an earlier call get it as if for the first time.
///
/// # Errors
/// All findings, if one of them is an error.
pub fn inject(text: &str, options: &Options) -> Result<Outcome, Vec<Finding>> {
    let documents = documents(text).map_err(|error| vec![unreadable_stream(text, &error)])?;
    let nodes = documents.iter().filter_map(|document| document.root.as_ref()).flat_map(objects);
    let values: Vec<Value> = nodes.map(|(_, node)| node.value()).collect();
    let stream = Stream::new(&values, options);
    each(text, documents, |text, object| injected(text, object, &stream))
}

fn injected(text: &str, object: &Path, stream: &Stream<'_>) -> Result<Edited, Vec<ObjectIssue>> {
    if stream.skips(&value_of(text, object)?) {
        return Ok(Edited { text: text.to_owned(), ..Edited::default() });
    }
    let earlier = edits(text, object)?.unwrap_or_default();
    let before = take_back(text, object)?.unwrap_or_else(|| text.to_owned());
    let value = value_of(&before, object)?;
    let options = stream.options(&value);
    let Some(Plan { changes, mut found, rollout }) = kinds::plan(&value, &options) else {
        let mut edited = Edited { text: before, ..Edited::default() };
        match kinds::passed(&value, &options) {
            Some(Passed::Kind(found)) => edited.found.push(found),
            Some(Passed::Container(found)) => edited.without_engine = Some(found),
            None => {}
        }
        return Ok(edited);
    };
    if found.iter().any(|found| found.severity == Severity::Error) {
        return Err(found);
    }
    check_keys(&before, object)?;
    let (after, edits) = edited(&before, object, changes)?;
    if take_back(&after, object)?.as_ref() != Some(&before) {
        return Err(uneditable("uninject would not give back the same bytes".to_owned()));
    }
    let summary = if after == text {
        Vec::new()
    } else {
        found.extend(rollout);
        summary(&value_of(text, object)?, &value_of(&after, object)?, edits.iter().chain(&earlier))
    };
    Ok(Edited { text: after, summary, found, has_engine: true, without_engine: None })
}

/// The text with the changes and the record of them.
fn edited(
    before: &str,
    object: &Path,
    changes: Vec<Change>,
) -> Result<(String, Vec<Undo>), Vec<ObjectIssue>> {
    let mut edits = Vec::new();
    let mut after = before.to_owned();
    // The annotation is made first and written last, so that its own way back is in it.
    for change in std::iter::once(recorded(&[])).chain(changes) {
        let edited = apply(&after, object, &change);
        if let Some((text, edit)) = edited.map_err(|error| uneditable_at(&change, error))? {
            after = text;
            add(&mut edits, edit);
        }
    }
    if let Some((text, _)) = apply(&after, object, &recorded(&edits)).map_err(uneditable)? {
        after = text;
    }
    Ok((after, edits))
}

/// Refuses keys behind which a field may be hidden.
fn check_keys(text: &str, object: &Path) -> Result<(), Vec<ObjectIssue>> {
    let root = one(text).map_err(unreadable)?;
    if root.has_merge_key() {
        return Err(vec![ObjectIssue::error(
            "<<",
            "it has merge keys, behind which a field may be hidden",
            "Write their content out",
        )]);
    }
    match find(&root, object, &Path::default()).and_then(Node::twice) {
        Some(key) => Err(vec![ObjectIssue::error(
            key,
            "the key is there twice",
            "Write it once: a reader takes only one of them",
        )]),
        None => Ok(()),
    }
}

/// The manifests as they were before [`inject`]. Other changes since then stay.
///
/// # Errors
/// All findings, if one of them is an error.
pub fn uninject(text: &str) -> Result<Outcome, Vec<Finding>> {
    let documents = documents(text).map_err(|error| vec![unreadable_stream(text, &error)])?;
    each(text, documents, |text, object| {
        let edits = edits(text, object)?.unwrap_or_default();
        let after = take_back(text, object)?.unwrap_or_else(|| text.to_owned());
        let summary = summary(&value_of(text, object)?, &value_of(&after, object)?, &edits);
        Ok(Edited { text: after, summary, ..Edited::default() })
    })
}

/// An object's document after the work.
#[derive(Default)]
struct Edited {
    text: String,
    /// Fields that differ from the input, one line each.
    summary: Vec<String>,
    found: Vec<ObjectIssue>,
    has_engine: bool,
    without_engine: Option<ObjectIssue>,
}

/// Goes through all objects. The function is given the document's text and where the object is in it.
fn each(
    text: &str,
    documents: Vec<Document>,
    edit: impl Fn(&str, &Path) -> Result<Edited, Vec<ObjectIssue>>,
) -> Result<Outcome, Vec<Finding>> {
    let mut outcome = Outcome::default();
    let mut findings = Vec::new();
    for (index, Document { text: range, root }) in documents.into_iter().enumerate() {
        let mut document = text[range].to_owned();
        for (at, node) in root.iter().flat_map(objects) {
            let name = name(node);
            let finding = |found: ObjectIssue| Finding {
                document: index + 1,
                object: Some(name.clone()),
                field: found.field,
                severity: found.severity,
                message: found.message,
                remedy: found.remedy,
            };
            match edit(&document, &at) {
                Ok(edited) => {
                    findings.extend(edited.found.into_iter().map(finding));
                    outcome.without_engine.extend(edited.without_engine.map(finding));
                    outcome.has_engine |= edited.has_engine;
                    if !edited.summary.is_empty() {
                        let (document, object) = (index + 1, name.clone());
                        outcome.changed.push(Changed { document, object, edits: edited.summary });
                    }
                    document = edited.text;
                }
                Err(found) => findings.extend(found.into_iter().map(finding)),
            }
        }
        outcome.text += &document;
    }
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Err(findings);
    }
    outcome.notes = findings;
    Ok(outcome)
}

/// The objects of a document: itself, or the items of a list.
fn objects(root: &Node) -> Vec<(Path, &Node)> {
    let is_list = |kind: &Node| kind.value().as_str().is_some_and(|kind| kind.ends_with("List"));
    let items = root.get("items").filter(|_| root.get("kind").is_some_and(is_list));
    match items {
        None => vec![(Path::default(), root)],
        Some(items) => {
            let at = |index| Path(vec![Step::key("items"), Step::Index(index)]);
            items.items().iter().enumerate().map(|(index, item)| (at(index), item)).collect()
        }
    }
}

fn name(object: &Node) -> String {
    let text = |node: Option<&Node>| match node.map(Node::value) {
        Some(Value::String(text)) => text,
        _ => "?".to_owned(),
    };
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    format!("{}/{}", text(object.get("kind")), text(name))
}

fn value_of(text: &str, object: &Path) -> Result<Value, Vec<ObjectIssue>> {
    let root = one(text).map_err(unreadable)?;
    Ok(find(&root, object, &Path::default()).map(Node::value).unwrap_or_default())
}

/// The edits that are recorded on the object.
fn edits(text: &str, object: &Path) -> Result<Option<Vec<Undo>>, Vec<ObjectIssue>> {
    let edits = read_record(&value_of(text, object)?).transpose();
    edits.map_err(|error| {
        vec![ObjectIssue::error(
            "metadata.annotations.stayput.dev/injected",
            format!("what inject has written down cannot be read: {error}"),
            "Begin with the manifest as it was before inject",
        )]
    })
}

/// The document without the edits that are recorded on the object, if there are any.
fn take_back(text: &str, object: &Path) -> Result<Option<String>, Vec<ObjectIssue>> {
    let Some(edits) = edits(text, object)? else { return Ok(None) };
    let mut edits = edits.iter().rev();
    let taken = edits.try_fold(text.to_owned(), |text, edit| undo(&text, object, edit));
    taken.map(Some).map_err(uneditable)
}

fn unreadable(error: String) -> Vec<ObjectIssue> {
    vec![ObjectIssue::error("the document", format!("it cannot be read: {error}"), "Correct it")]
}

fn uneditable(error: String) -> Vec<ObjectIssue> {
    vec![ObjectIssue::error(
        "the document",
        error,
        "Write the object in plain block style, without anchors and aliases",
    )]
}

fn uneditable_at(change: &Change, error: String) -> Vec<ObjectIssue> {
    let (Change::Put { at, child, .. } | Change::Remove { at, child }) = change;
    let field = Some(at.then(child.clone()).to_string());
    uneditable(error)
        .into_iter()
        .map(|found| ObjectIssue { field: field.clone(), ..found })
        .collect()
}

fn unreadable_stream(text: &str, error: &str) -> Finding {
    let remedy = if text.contains("{{") {
        "A template is no manifest: render it first, as `helm template` does"
    } else {
        "Correct it; nothing was written"
    };
    Finding {
        document: 1,
        object: None,
        field: None,
        severity: Severity::Error,
        message: format!("the input is not YAML: {error}"),
        remedy: remedy.to_owned(),
    }
}

/// The options, and the number of engines that they are for.
struct Stream<'a> {
    options: &'a Options,
    /// Number of objects with an engine.
    engines: usize,
}

impl<'a> Stream<'a> {
    fn new(objects: &[Value], options: &'a Options) -> Self {
        let kept = objects.iter().filter(|object| !is_skipped(object, options));
        let engines = kept.filter_map(|object| kinds::has_known_command(object, options)).count();
        Self { options, engines }
    }

    /// True for an object that an option leaves as it is.
    fn skips(&self, object: &Value) -> bool {
        is_skipped(object, self.options)
    }

    /// The options that count for an object. Beside other engines `--command` is only for those whose
    /// command is not known.
    fn options(&self, object: &Value) -> Cow<'a, Options> {
        let is_known = kinds::has_known_command(object, self.options) == Some(true);
        if self.engines > 1 && is_known && !self.options.command.is_empty() {
            Cow::Owned(Options { command: Vec::new(), ..self.options.clone() })
        } else {
            Cow::Borrowed(self.options)
        }
    }
}

fn is_skipped(object: &Value, options: &Options) -> bool {
    let name = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let object = format!("{}/{}", name(&object["kind"]), name(&object["metadata"]["name"]));
    options.skip.contains(&object)
}

/// Annotation of the object, not of its pods: it is no reason to replace them.
const ANNOTATION: &str = "stayput.dev/injected";

/// The edits that are recorded on an object, if there was an inject.
fn read_record(object: &Value) -> Option<Result<Vec<Undo>, String>> {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
    Some(serde_json::from_str(text).map_err(|error| error.to_string()))
}

/// The change that records the edits.
fn recorded(edits: &[Undo]) -> Change {
    let text = serde_json::to_string(edits).unwrap_or_default();
    Change::Put {
        at: Path::keys(&["metadata", "annotations"]),
        child: Step::key(ANNOTATION),
        value: Value::String(text),
    }
}

/// Adds an edit; children that were added to the same collection become one edit.
fn add(edits: &mut Vec<Undo>, edit: Undo) {
    if let (
        Some(Undo::Added { at, children, .. }),
        Undo::Added { at: new_at, children: new, empty: None },
    ) = (edits.last_mut(), &edit)
        && at == new_at
    {
        children.extend(new.iter().cloned());
        return;
    }
    edits.push(edit);
}
