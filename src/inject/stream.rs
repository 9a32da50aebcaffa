//! Objects of one stream: an option that is meant for one object must not break another.

use std::borrow::Cow;

use serde_json::Value;

use crate::kinds;
use crate::options::Options;

/// The options, and the number of engines that they are for.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    options: &'a Options,
    /// Number of objects with an engine.
    engines: usize,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(objects: &[Value], options: &'a Options) -> Self {
        let kept = objects.iter().filter(|object| !is_skipped(object, options));
        let engines = kept.filter_map(|object| kinds::has_known_command(object, options)).count();
        Self { options, engines }
    }

    /// True for an object that an option leaves as it is.
    pub(crate) fn skips(&self, object: &Value) -> bool {
        is_skipped(object, self.options)
    }

    /// The options that count for an object. Beside other engines `--command` is only for those whose
    /// command is not known.
    pub(crate) fn options(&self, object: &Value) -> Cow<'a, Options> {
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
