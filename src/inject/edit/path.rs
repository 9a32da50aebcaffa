//! Paths inside an object: by keys, and by the names of list items.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One step from a collection to a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Key of a mapping.
    Key(String),
    /// Item of a list, with this value in this field.
    Item { field: String, value: String },
    /// Index in a list of objects: only on the way to an object.
    Index(usize),
}

impl Step {
    pub(crate) fn key(key: &str) -> Self {
        Self::Key(key.to_owned())
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::item("name", name)
    }

    pub(crate) fn item(field: &str, value: &str) -> Self {
        Self::Item { field: field.to_owned(), value: value.to_owned() }
    }

    /// Parses a step. An item is written `field=value`; no key here has a `=`.
    fn parse(text: &str) -> Self {
        match text.split_once('=') {
            Some((field, value)) => Self::item(field, value),
            None => Self::key(text),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => formatter.write_str(key),
            Self::Item { field, value } => write!(formatter, "{field}={value}"),
            Self::Index(index) => write!(formatter, "{index}"),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// The path through these keys.
    pub(crate) fn keys(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Step::key(key)).collect())
    }

    pub(crate) fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    pub(crate) fn join(&self, more: &Self) -> Self {
        Self(self.0.iter().chain(&more.0).cloned().collect())
    }

    /// The path of the surrounding collection, and the step from there.
    pub(crate) fn split(&self) -> Option<(Self, Step)> {
        let (last, rest) = self.0.split_last()?;
        Some((Self(rest.to_vec()), last.clone()))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => formatter.write_str(key)?,
                Step::Key(key) => write!(formatter, ".{key}")?,
                Step::Item { .. } | Step::Index(_) => write!(formatter, "[{step}]")?,
            }
        }
        Ok(())
    }
}
