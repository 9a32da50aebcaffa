//! What of a Secret or ConfigMap does not count.

use std::collections::BTreeSet;

/// The annotation that takes an object, or keys of it, out of what counts.
pub const IGNORE: &str = "stayput.dev/ignore";

/// What that annotation says: `true` for the whole object, or names of keys with commas between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ignore {
    /// All of the object counts.
    #[default]
    Nothing,
    /// Nothing of it counts.
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

    /// Whether this key does not count.
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Keys(keys) => keys.contains(key),
        }
    }
}
