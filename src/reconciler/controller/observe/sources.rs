//! The config in its Secrets and ConfigMaps. Only digests of their contents are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::ages::Ages;
use crate::cluster::{MissingSource, Object, ObjectKind, Sources};
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::join_limited;
use crate::controller::pods::Facts;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};
use stayput_restart as restart;

/// Digest of each key's content.
type Content = BTreeMap<String, ContentDigest>;

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
        let mut due = BTreeSet::new();
        for pod in pods {
            for object in sources.objects(&pod.name) {
                if ages.is_over(&pod.uid, self.known.get(&object).map(|(read, _)| *read)) {
                    due.insert(object.clone());
                }
                named.insert(object);
            }
        }
        self.known.retain(|object, _| named.contains(object));
        let read = async |object: Object| {
            let content = read(api, namespace, &object).await;
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

    fn files(&self, sources: &Sources, pod: &str) -> Result<Vec<FileDigest>, SourceError> {
        for object in sources.objects(pod) {
            if let Some((_, Err(source))) = self.known.get(&object) {
                return Err(SourceError::Unread { object, source: Arc::clone(source) });
            }
        }
        let files = sources.files(pod, |object| match self.known.get(object) {
            Some((_, Ok(Some(content)))) => Some(content),
            Some((_, Ok(None) | Err(_))) | None => None,
        })?;
        let digest = |(path, digest): (String, &ContentDigest)| FileDigest {
            path: path.into_bytes(),
            sha256: *digest,
        };
        Ok(files.into_iter().map(digest).collect())
    }
}

/// None if it is absent.
async fn read(
    api: &Apiserver,
    namespace: &str,
    object: &Object,
) -> Result<Option<Content>, ApiError> {
    let content = match object.kind {
        ObjectKind::Secret => api.secret(namespace, &object.name).await.map(|secret| {
            let data = secret.data.into_iter().flatten();
            data.map(|(key, value)| (key, ContentDigest::of(&value.0))).collect()
        }),
        ObjectKind::ConfigMap => api.config_map(namespace, &object.name).await.map(|map| {
            let text = map.data.into_iter().flatten();
            let text = text.map(|(key, value)| (key, ContentDigest::of(value.as_bytes())));
            let binary = map.binary_data.into_iter().flatten();
            text.chain(binary.map(|(key, value)| (key, ContentDigest::of(&value.0)))).collect()
        }),
    };
    match content {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
