//! The config in its Secrets and ConfigMaps. Only digests of their contents are kept, and of the
//! engine's settings those that may need all nodes at once.

mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::time::Instant;

use super::ages::Ages;
use crate::cluster::{MissingSource, Object, ObjectKind, Sources};
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::pods::Facts;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};
use stayput_restart::{self as restart, Settings};

/// What is kept of an object.
#[derive(Debug)]
struct Content {
    /// Digest of each key's content.
    digests: BTreeMap<String, ContentDigest>,
    /// The decisive settings in the keys that have the engine's; none if they cannot be read.
    settings: BTreeMap<String, Option<Settings>>,
}

/// The content; none if the object is absent.
type ReadContent = Result<Option<Content>, Arc<ApiError>>;

/// Reads the objects, and keeps what was read.
#[derive(Debug, Default)]
pub(super) struct SourceReader {
    /// When each was read, and what.
    known: BTreeMap<Object, (Instant, ReadContent)>,
}

/// Why the config of a pod is not known.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("cannot read {object}: {source}")]
    Unread {
        object: Object,
        #[source]
        source: Arc<ApiError>,
    },
    #[error(transparent)]
    Missing(#[from] MissingSource),
}

impl SourceReader {
    /// Reads those that are due, and forgets those that the spec does not name any more.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        sources: &Sources,
        pods: &[Arc<Facts>],
        ages: &Ages<'_>,
    ) {
        let mut named = BTreeSet::new();
        let mut due: BTreeMap<Object, BTreeSet<String>> = BTreeMap::new();
        for pod in pods {
            for object in sources.objects(&pod.name) {
                if ages.is_over(&pod.uid, self.known.get(&object).map(|(read, _)| *read)) {
                    due.entry(object.clone()).or_default();
                }
                named.insert(object);
            }
            for (object, key) in sources.settings(&pod.name) {
                if let Some(keys) = due.get_mut(&object) {
                    keys.insert(key);
                }
            }
        }
        self.known.retain(|object, _| named.contains(object));
        let read = async |(object, settings): (Object, BTreeSet<String>)| {
            let content = read(api, namespace, &object, &settings).await;
            (object, (Instant::now(), content.map_err(Arc::new)))
        };
        self.known.extend(join_limited(due.into_iter().map(read).collect()).await);
    }

    /// All are read at the next observation.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// The checksum of a pod's config in its sources.
    pub(super) fn of(&self, sources: &Sources, pod: &str) -> restart::Sources {
        if sources.is_empty() {
            return restart::Sources::Undeclared;
        }
        match self.files(sources, pod) {
            Ok(files) => restart::Sources::Checksum(Checksum::of_files(&files).to_string()),
            Err(error) => restart::Sources::Absent(error.to_string()),
        }
    }

    /// The first file of which `mounted` (path and digest) differs from the sources.
    pub(super) fn lagging<'a>(
        &self,
        sources: &Sources,
        pod: &str,
        mounted: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<String> {
        let files = self.files(sources, pod).ok()?;
        let mounted: BTreeMap<&str, &str> = mounted.collect();
        let differs = |file: &&FileDigest| {
            let path = String::from_utf8_lossy(&file.path);
            mounted.get(&*path).is_none_or(|mounted| **mounted != file.sha256.to_string())
        };
        let path = |file: &FileDigest| String::from_utf8_lossy(&file.path).into_owned();
        if let Some(file) = files.iter().find(differs) {
            return Some(path(file));
        }
        let wanted: BTreeSet<String> = files.iter().map(path).collect();
        mounted.keys().find(|path| !wanted.contains(**path)).map(|path| (*path).to_owned())
    }

    /// What is known of the configs that the sources of these pods have.
    pub(super) fn configs(
        &self,
        sources: &Sources,
        pods: &[restart::Pod],
    ) -> restart::KnownConfigs {
        let mut known = restart::KnownConfigs::default();
        for pod in pods {
            if let restart::Sources::Checksum(checksum) = &pod.sources
                && !known.is_full()
                && known.of(checksum).is_none()
                && let Some(settings) = self.settings(sources, &pod.name)
            {
                known.add(checksum, &settings);
            }
        }
        known
    }

    /// The decisive settings of a pod; none if it has no file of them, or one that cannot be read.
    fn settings(&self, sources: &Sources, pod: &str) -> Option<Settings> {
        let mut all: Option<Settings> = None;
        for (object, key) in sources.settings(pod) {
            let (_, Ok(Some(content))) = self.known.get(&object)? else { return None };
            if let Some(settings) = content.settings.get(&key) {
                all.get_or_insert_default().extend(settings.clone()?);
            }
        }
        all
    }

    fn files(&self, sources: &Sources, pod: &str) -> Result<Vec<FileDigest>, SourceError> {
        for object in sources.objects(pod) {
            if let Some((_, Err(source))) = self.known.get(&object) {
                return Err(SourceError::Unread { object, source: Arc::clone(source) });
            }
        }
        let files = sources.files(pod, |object| match self.known.get(object) {
            Some((_, Ok(Some(content)))) => Some(&content.digests),
            Some((_, Ok(None) | Err(_))) | None => None,
        })?;
        let digest = |(path, digest): (String, &ContentDigest)| FileDigest {
            path: path.into_bytes(),
            sha256: *digest,
        };
        Ok(files.into_iter().map(digest).collect())
    }
}

/// None if it is absent. `settings` are the keys that have the engine's settings.
async fn read(
    api: &Apiserver,
    namespace: &str,
    object: &Object,
    settings: &BTreeSet<String>,
) -> Result<Option<Content>, ApiError> {
    let keep = |values: BTreeMap<String, Vec<u8>>| Content {
        settings: values
            .iter()
            .filter(|(key, _)| settings.contains(*key))
            .map(|(key, value)| (key.clone(), settings::of(value)))
            .collect(),
        digests: values
            .iter()
            .map(|(key, value)| (key.clone(), ContentDigest::of(value)))
            .collect(),
    };
    let values = match object.kind {
        ObjectKind::Secret => api.get::<Secret>(namespace, &object.name).await.map(|secret| {
            let data = secret.data.into_iter().flatten();
            data.map(|(key, value)| (key, value.0)).collect()
        }),
        ObjectKind::ConfigMap => api.get::<ConfigMap>(namespace, &object.name).await.map(|map| {
            let text = map.data.into_iter().flatten();
            let text = text.map(|(key, value)| (key, value.into_bytes()));
            let binary = map.binary_data.into_iter().flatten();
            text.chain(binary.map(|(key, value)| (key, value.0))).collect()
        }),
    };
    match values {
        Ok(values) => Ok(Some(keep(values))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
