//! The checked spec: sources of the config, globs, and how to authenticate to managers.

use std::collections::BTreeMap;

use glob::{MatchOptions, Pattern};
use stayput_api::checksum::Checksum;
use stayput_pod_update::{MountedConfig, Source, SourceKind};

use crate::cluster::declared::SET;

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live(pub(crate) Vec<Pattern>);

impl Live {
    /// True if the engine reloads the file at this path by itself. `path`: as managers list it.
    pub fn covers(&self, path: &str) -> bool {
        // As in a shell, and as in the manager: `*` does not match a slash.
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        self.0.iter().any(|pattern| pattern.matches_with(path, options))
    }
}

/// One source, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: SourceKind,
    /// Name of the object, with `{pod}` for the pod's name.
    pub(crate) template: String,
    /// Key and path of each mounted file; empty: every key under its own name.
    pub(crate) items: Vec<(String, String)>,
    pub(crate) directory: String,
    /// True if an absent object, or an absent key of it, is no error: its files are left out.
    pub(crate) optional: bool,
}

/// A source from which the config of a pod cannot be made; the message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingSource {
    /// The object does not exist.
    #[error("{0} is absent: create it, or take it out of the sources of the config")]
    Object(Source),
    /// The object has no such key.
    #[error(
        "{object} has no key {key}, which is to be mounted at {path}: add the key, or take the item \
         out"
    )]
    Key {
        /// The object.
        object: Source,
        /// The key.
        key: String,
        /// The path that the item is mounted at.
        path: String,
    },
}

/// The sources of the engine's config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    pub(crate) parts: Vec<Part>,
    pub(crate) live: Live,
}

impl Sources {
    /// The sources that a pod mounts. The globs are those of the pod's manager and those of
    /// `spec.config.live`.
    pub fn found(config: MountedConfig, live: &[String]) -> Self {
        let part = |part: stayput_pod_update::MountedPart| Part {
            kind: part.source.kind,
            template: part.source.name,
            items: part.items,
            directory: part.directory,
            optional: part.optional,
        };
        // A manager does not start with a glob that is no pattern.
        let globs = config.live.iter().chain(live).filter_map(|glob| Pattern::new(glob).ok());
        let live = Live(globs.collect());
        Self { parts: config.parts.into_iter().map(part).collect(), live }
    }

    /// The files that the engine reloads by itself.
    pub const fn live(&self) -> &Live {
        &self.live
    }

    /// True if the spec names no sources: those that the pods mount count.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The objects that the config of this pod is made from, each once.
    pub fn objects(&self, pod: &str) -> Vec<Source> {
        let mut objects: Vec<Source> = self.parts.iter().map(|part| part.object(pod)).collect();
        objects.sort();
        objects.dedup();
        objects
    }

    /// The objects and keys that may hold this pod's engine settings.
    pub fn settings(&self, pod: &str) -> Vec<(Source, String)> {
        let of_part = |part: &Part| {
            let keys: Vec<String> = if part.items.is_empty() {
                SETTINGS.map(str::to_owned).into()
            } else {
                let items = part.items.iter().filter(|(_, path)| is_settings(path));
                items.map(|(key, _)| key.clone()).collect()
            };
            let object = part.object(pod);
            keys.into_iter().map(move |key| (object.clone(), key))
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// The objects and keys that may be mounted at this path of a pod. `path`: as managers list it.
    pub fn keys_at(&self, pod: &str, path: &str) -> Vec<(Source, String)> {
        let of_part = |part: &Part| {
            let object = part.object(pod);
            let items = part.items.iter().filter(|(_, item)| part.listed(item) == path);
            let keys: Vec<String> = if part.items.is_empty() {
                part.key_at(path).map(str::to_owned).into_iter().collect()
            } else {
                items.map(|(key, _)| key.clone()).collect()
            };
            keys.into_iter().map(move |key| (object.clone(), key))
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// The checksum that this pod's manager will have of its config once the kubelet has brought it there.
    /// `read` looks up an object's content, if the object exists.
    ///
    /// # Errors
    /// The object that is absent or lacks a key.
    pub fn checksum<'a>(
        &self,
        pod: &str,
        read: impl Fn(&Source) -> Option<&'a BTreeMap<String, Vec<u8>>>,
    ) -> Result<Checksum, MissingSource> {
        self.files(pod, read).map(Checksum::of_contents)
    }

    /// The files that [`Self::checksum`] covers, by path: whatever `read` has for each key of an object, its
    /// content or a digest of it. `read` looks up an object, if it exists.
    ///
    /// # Errors
    /// The object that is absent or lacks a key.
    pub fn files<'a, T>(
        &self,
        pod: &str,
        read: impl Fn(&Source) -> Option<&'a BTreeMap<String, T>>,
    ) -> Result<BTreeMap<String, &'a T>, MissingSource> {
        // By path: a later part covers an earlier one, as in a projected volume.
        let mut files = BTreeMap::new();
        for part in &self.parts {
            let object = part.object(pod);
            let content = match read(&object) {
                Some(content) => content,
                None if part.optional => continue,
                None => return Err(MissingSource::Object(object)),
            };
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
    fn object(&self, pod: &str) -> Source {
        let set = pod.rsplit_once('-').map_or(pod, |(set, _)| set);
        let name = self.template.replace("{pod}", pod).replace(SET, set);
        Source { kind: self.kind, name }
    }

    fn files<'a, T>(
        &self,
        object: &Source,
        content: &'a BTreeMap<String, T>,
    ) -> Result<Vec<(String, &'a T)>, MissingSource> {
        if self.items.is_empty() {
            return Ok(content.iter().map(|(key, value)| (self.listed(key), value)).collect());
        }
        let mut files = Vec::new();
        for (key, path) in &self.items {
            match content.get(key) {
                Some(value) => files.push((self.listed(path), value)),
                None if self.optional => {}
                None => {
                    let (object, key, path) = (object.clone(), key.clone(), path.clone());
                    return Err(MissingSource::Key { object, key, path });
                }
            }
        }
        Ok(files)
    }

    /// The key that is mounted at this path, of an object that is mounted with all of its keys.
    fn key_at<'a>(&self, path: &'a str) -> Option<&'a str> {
        let below = if self.directory.is_empty() {
            Some(path)
        } else {
            path.strip_prefix(&self.directory)?.strip_prefix('/')
        };
        below.filter(|key| !key.contains('/'))
    }

    /// The path of a file as managers list it: with the name of its config directory.
    fn listed(&self, path: &str) -> String {
        if self.directory.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.directory)
        }
    }
}
