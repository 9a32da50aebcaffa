//! The annotation with the edits of an object, for their undo.

use serde_json::Value;

use crate::edit::{Change, Path, Step, Undo};

/// Annotation of the object, not of its pods: it is no reason to replace them.
const ANNOTATION: &str = "stayput.dev/injected";

/// The edits that are recorded on an object, if there was an inject.
pub(crate) fn read(object: &Value) -> Option<Result<Vec<Undo>, String>> {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str()?;
    Some(serde_json::from_str(text).map_err(|error| error.to_string()))
}

/// The change that records the edits.
pub(crate) fn write(edits: &[Undo]) -> Change {
    let text = serde_json::to_string(edits).unwrap_or_default();
    Change::Put {
        at: Path::keys(&["metadata", "annotations"]),
        child: Step::key(ANNOTATION),
        value: Value::String(text),
    }
}

/// Adds an edit; children that were added to the same collection become one edit.
pub(crate) fn add(edits: &mut Vec<Undo>, edit: Undo) {
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
