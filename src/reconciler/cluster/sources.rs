//! The checked spec: sources of the config, globs, and how to authenticate to managers.

use std::collections::BTreeMap;

use glob::{MatchOptions, Pattern};

use super::declared::SET;
use stayput_api::checksum::Checksum;

/// How we authenticate to the managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// A token of our own service account, one per pod.
    ServiceAccountToken,
    /// Tokens signed with the key in this Secret.
    JwtKey {
        /// Name of the Secret.
        secret: String,
    },
    /// The client certificate in this Secret.
    ClientCertificate {
        /// Name of the Secret.
        secret: String,
    },
}

/// Files that the engine reloads by itself.
#[derive(Debug, Clone, Default)]
pub struct Live(pub(super) Vec<Pattern>);

impl Live {
    /// Whether the file at this path is one of them; the path as managers list it.
    pub fn covers(&self, path: &str) -> bool {
        // As in a shell, and as in the manager: `*` does not match a slash.
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        self.0.iter().any(|pattern| pattern.matches_with(path, options))
    }
}

/// Kind of an object with config in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A Secret.
    Secret,
    /// A ConfigMap: its `data` and its `binaryData`.
    ConfigMap,
}

/// An object with config in it, in the namespace of the SearchCluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

/// One source, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: ObjectKind,
    /// Name of the object, with `{pod}` for the pod's name.
    pub(super) template: String,
    /// Key and path; empty: every key under its own name.
    pub(super) items: Vec<(String, String)>,
    pub(super) directory: String,
}

/// A source from which the config of a pod cannot be made; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingSource {
    /// The object does not exist.
    #[error("{0} is absent: create it, or take it out of spec.config.sources")]
    Object(Object),
    /// The object has no such key.
    #[error(
        "{object} has no key {key}, which spec.config.sources mounts at {path}: add the key, or take \
         the item out"
    )]
    Key {
        /// The object.
        object: Object,
        /// The key.
        key: String,
        /// The path that the item is mounted at.
        path: String,
    },
}

/// What the engine's config is made from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub(super) parts: Vec<Part>,
    pub(super) live: Live,
}

impl Sources {
    /// None are declared: what is mounted is expected.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The objects that the config of this pod is made from, each once.
    pub fn objects(&self, pod: &str) -> Vec<Object> {
        let mut objects: Vec<Object> = self.parts.iter().map(|part| part.object(pod)).collect();
        objects.sort();
        objects.dedup();
        objects
    }

    /// The objects and keys that the engine's settings of this pod are made from, if they are there.
    pub fn settings(&self, pod: &str) -> Vec<(Object, String)> {
        let of_part = |part: &Part| {
            let keys: Vec<String> = match part.items.is_empty() {
                true => SETTINGS.map(str::to_owned).into(),
                false => {
                    let items = part.items.iter().filter(|(_, path)| is_settings(path));
                    items.map(|(key, _)| key.clone()).collect()
                }
            };
            let object = part.object(pod);
            keys.into_iter().map(move |key| (object.clone(), key))
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// The checksum that this pod's manager will have of its config once the kubelet has brought it
    /// there. `read` looks up an object's content; none if the object is absent.
    ///
    /// # Errors
    /// The object that is absent or lacks a key.
    pub fn checksum<'a>(
        &self,
        pod: &str,
        read: impl Fn(&Object) -> Option<&'a BTreeMap<String, Vec<u8>>>,
    ) -> Result<Checksum, MissingSource> {
        self.files(pod, read).map(Checksum::of_contents)
    }

    /// The files that checksum is made from, by path: whatever `read` has for each key of an object,
    /// its content or a digest of it; none if the object is absent.
    ///
    /// # Errors
    /// The object that is absent or lacks a key.
    pub fn files<'a, T>(
        &self,
        pod: &str,
        read: impl Fn(&Object) -> Option<&'a BTreeMap<String, T>>,
    ) -> Result<BTreeMap<String, &'a T>, MissingSource> {
        // By path: a later part covers an earlier one, as in a projected volume.
        let mut files = BTreeMap::new();
        for part in &self.parts {
            let object = part.object(pod);
            let content = read(&object).ok_or_else(|| MissingSource::Object(object.clone()))?;
            for (path, value) in part.files(&object, content)? {
                if !self.live.covers(&path) {
                    files.insert(path, value);
                }
            }
        }
        Ok(files)
    }
}

/// The files that an engine reads its settings from.
const SETTINGS: [&str; 2] = ["elasticsearch.yml", "opensearch.yml"];

fn is_settings(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| SETTINGS.contains(&name))
}

impl Part {
    fn object(&self, pod: &str) -> Object {
        let set = pod.rsplit_once('-').map_or(pod, |(set, _)| set);
        let name = self.template.replace("{pod}", pod).replace(SET, set);
        Object { kind: self.kind, name }
    }

    fn files<'a, T>(
        &self,
        object: &Object,
        content: &'a BTreeMap<String, T>,
    ) -> Result<Vec<(String, &'a T)>, MissingSource> {
        if self.items.is_empty() {
            return Ok(content.iter().map(|(key, value)| (self.listed(key), value)).collect());
        }
        let file = |(key, path): &(String, String)| {
            let value = content.get(key).ok_or_else(|| MissingSource::Key {
                object: object.clone(),
                key: key.clone(),
                path: path.clone(),
            })?;
            Ok((self.listed(path), value))
        };
        self.items.iter().map(file).collect()
    }

    /// The path as managers list it.
    fn listed(&self, path: &str) -> String {
        if self.directory.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.directory)
        }
    }
}
