//! What is asked of the reconciler: annotations, each written only onto what was seen.

mod cancel;
mod nodes;
mod restart;

pub(super) use cancel::cancel;
pub(super) use nodes::{start, stop};
pub(super) use restart::restart;

use serde_json::{Value, json};

use super::output::{ActOutput, Done};
use super::view::View;

/// How often a command looks again when somebody else was there first.
const TRIES: usize = 5;

/// What a command did, for both kinds of readers.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) page: String,
    pub(super) output: ActOutput,
}

impl ActOutput {
    fn new(view: &View, done: Done) -> Self {
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            done,
            id: None,
            strategy: None,
            nodes: Vec::new(),
        }
    }
}

/// Sets an annotation (or removes it) if nothing has changed since the object was read.
fn annotate(version: &str, is_annotated: bool, key: &str, value: Option<&str>) -> Value {
    let mut patch =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    if !is_annotated {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    // A slash in a path is written so (RFC 6901).
    let path = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    patch.push(match value {
        Some(value) => json!({"op": "add", "path": path, "value": value}),
        None => json!({"op": "remove", "path": path}),
    });
    Value::Array(patch)
}

/// Somebody else is always faster.
fn contended(what: &str) -> super::Failure {
    super::Failure::Failed(format!(
        "{what} was changed by others {TRIES} times meanwhile: try again"
    ))
}
