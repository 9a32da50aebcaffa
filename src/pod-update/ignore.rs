//! Secrets and ConfigMaps, or keys of them, that do not count.

use std::collections::BTreeSet;

/// The annotation that excludes an object, or keys of it, from the comparison.
pub const IGNORE: &str = "stayput.dev/ignore";

/// Value of [`IGNORE`]: `true` for the whole object, or names of keys with commas between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ignore {
    /// All of the object counts.
    #[default]
    Nothing,
    /// Nothing of the object counts.
    Everything,
    /// These keys do not count.
    Keys(BTreeSet<String>),
}

impl Ignore {
    /// Reads the annotation's value.
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None | Some("" | "false") => Self::Nothing,
            Some("true") => Self::Everything,
            Some(keys) => Self::Keys(keys.split(',').map(|key| key.trim().to_owned()).collect()),
        }
    }

    /// True if this key does not count.
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Keys(keys) => keys.contains(key),
        }
    }
}
