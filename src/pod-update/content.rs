//! The content of the Secrets and ConfigMaps that a pod reads, by key.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::uses::Use;

/// Content of the objects that could be read. An object that is not here is unknown, and never a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Digests", try_from = "Digests")]
pub struct Content {
    objects: BTreeMap<Source, BTreeMap<String, String>>,
    ignored: BTreeMap<Source, Ignore>,
    earlier: BTreeMap<Source, EarlierDigests>,
}

/// Digests by object and key, as a note has them.
type Digests = BTreeMap<String, BTreeMap<String, String>>;

impl From<Content> for Digests {
    fn from(content: Content) -> Self {
        content.objects.into_iter().map(|(source, keys)| (source.to_string(), keys)).collect()
    }
}

impl TryFrom<Digests> for Content {
    type Error = String;

    fn try_from(digests: Digests) -> Result<Self, String> {
        let mut known = Self::default();
        for (name, keys) in digests {
            let source = Source::parse(&name).ok_or(name)?;
            known.add(source, keys, Ignore::Nothing);
        }
        Ok(known)
    }
}

/// By key, the digests of the same content in earlier objects of the same name.
pub type EarlierDigests = BTreeMap<String, BTreeSet<String>>;

impl Content {
    /// Adds an object: the digest of each key's bytes, and the keys that do not count.
    pub fn add(&mut self, source: Source, digests: BTreeMap<String, String>, ignore: Ignore) {
        self.ignored.insert(source.clone(), ignore);
        self.objects.insert(source, digests);
    }

    /// Adds digests that mean the same as those of an object that is there: one object was deleted and another
    /// one made with the same content.
    pub fn add_earlier(&mut self, source: Source, digests: EarlierDigests) {
        self.earlier.insert(source, digests);
    }

    /// The content with the digests of the objects that are `wanted` now, where those of earlier ones mean the same.
    #[must_use]
    pub(crate) fn renewed(mut self, wanted: &Self) -> Self {
        for (source, keys) in &mut self.objects {
            let (Some(earlier), Some(now)) =
                (wanted.earlier.get(source), wanted.objects.get(source))
            else {
                continue;
            };
            for (key, digest) in keys {
                let is_same = earlier.get(key).is_some_and(|earlier| earlier.contains(digest));
                if let Some(now) = now.get(key).filter(|_| is_same) {
                    digest.clone_from(now);
                }
            }
        }
        self
    }

    /// The content to note for a pod whose content is `self`, when `wanted` is ignored in parts: of these
    /// parts the wanted digests, so that the annotation restarts nothing when it is taken off.
    #[must_use]
    pub fn noted(&self, wanted: &Self) -> Self {
        let mut noted = Self { objects: self.objects.clone(), ..Self::default() };
        for (source, keys) in &wanted.objects {
            let all: BTreeSet<&String> = keys
                .keys()
                .chain(self.objects.get(source).into_iter().flat_map(BTreeMap::keys))
                .collect();
            for key in all.into_iter().filter(|key| wanted.ignores(source, key)) {
                let object = noted.objects.entry(source.clone()).or_default();
                match keys.get(key) {
                    Some(digest) => object.insert(key.clone(), digest.clone()),
                    None => object.remove(key),
                };
            }
        }
        noted
    }

    /// The objects and the digests of their keys.
    pub(crate) fn objects(&self) -> &BTreeMap<Source, BTreeMap<String, String>> {
        &self.objects
    }

    /// The part of the content that is used.
    #[must_use]
    pub fn used(&self, uses: &BTreeSet<Use>) -> Self {
        let is_used = |source: &Source, key: &str| {
            uses.iter().any(|used| used.source == *source && used.covers(key))
        };
        let mut kept = self.clone();
        kept.objects.retain(|source, keys| {
            keys.retain(|key, _| is_used(source, key));
            uses.iter().any(|used| used.source == *source)
        });
        kept
    }

    fn ignores(&self, source: &Source, key: &str) -> bool {
        self.ignored.get(source).is_some_and(|ignore| ignore.covers(key))
    }

    /// The keys of a used object whose content differs from that in `actual`; empty if the object
    /// is not known in both. Looks only at the keys that are used.
    pub(crate) fn changed_keys(&self, actual: &Self, used: &Use) -> Vec<KeyChange> {
        let source = &used.source;
        let (Some(new), Some(old)) = (self.objects.get(source), actual.objects.get(source)) else {
            return vec![];
        };
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        keys.into_iter()
            .filter(|key| used.covers(key))
            .filter(|key| !self.ignores(source, key) && old.get(*key) != new.get(*key))
            .map(|key| KeyChange {
                key: key.clone(),
                from: old.get(key).cloned(),
                to: new.get(key).cloned(),
            })
            .collect()
    }
}

/// A key whose content has changed, with both digests.
#[derive(Debug)]
pub(crate) struct KeyChange {
    pub(crate) key: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

/// Secret or ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// An object that a pod reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Kind of the object.
    pub kind: SourceKind,
    /// Name of the object, in the pod's namespace.
    pub name: String,
}

/// Text such as `Secret logs-config`.
impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            SourceKind::ConfigMap => "ConfigMap",
            SourceKind::Secret => "Secret",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

impl Source {
    /// Reads the text that `Display` writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(' ')?;
        let kind = match kind {
            "ConfigMap" => SourceKind::ConfigMap,
            "Secret" => SourceKind::Secret,
            _ => return None,
        };
        Some(Self { kind, name: name.to_owned() })
    }
}

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
