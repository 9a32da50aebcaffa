//! The config in its Secrets and ConfigMaps, and as a pod's manager lists it. Keeps only digests of their
//! contents, and of the engine's settings those that may need all nodes at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use stayput_api::checksum::{Checksum, ContentDigest, FileDigest};
use stayput_api::{ConfigFile, Status, without_initial_masters};
use stayput_kube_access::cluster::{Checked, MissingSource, NotAllowed, Sources, allows};
use stayput_pod_update::{Ignore, Source, SourceKind, decisive, settings};
use stayput_restart::{self as restart, Settings};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver, namespaced_name};
use crate::concurrency::join_limited;
use crate::observe::content::Object;
use crate::observe::snapshot::Ages;
use crate::pods::PodFacts;

/// Cached state of an object.
#[derive(Debug)]
struct Content {
    /// Digest of each key's content.
    digests: BTreeMap<String, ContentDigest>,
    /// Digest of each key's content, without `cluster.initial_master_nodes` where the engine's settings have
    /// it.
    formed: BTreeMap<String, ContentDigest>,
    /// Decisive settings of each key that has the engine's; `None` for one that cannot be read.
    settings: BTreeMap<String, Option<Settings>>,
    /// The keys that do not count.
    ignore: Ignore,
}

/// Cached state of an object; `None` for an absent one.
type ReadContent = Result<Option<Content>, Arc<Unread>>;

/// Reason why an object is not read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The Secret does not allow its use: its checksum would be in the status, where the content can be
    /// guessed.
    #[error("{0}; or mount it in the pods")]
    NotAllowed(#[from] NotAllowed),
}

/// Reads the objects, and caches their state.
#[derive(Debug, Default)]
pub(super) struct SourceReader {
    /// Time and result of the last read of each object.
    known: BTreeMap<Source, (Instant, ReadContent)>,
}

/// The sources of a pod's config: those that the spec names, or those that are found in the pod.
///
/// # Errors
/// Message that says why there are none, and what to do.
pub(super) fn sources_of<'a>(
    checked: &'a Checked,
    pod: &'a PodFacts,
) -> Result<&'a Sources, String> {
    match &pod.sources {
        _ if !checked.sources.is_empty() => Ok(&checked.sources),
        Some(Ok(found)) => Ok(found),
        Some(Err(reason)) => Err(format!("the pod {} {reason}", pod.name)),
        None => Err("spec.config.sources cannot be used as it is written".into()),
    }
}

/// The names of a pod's sources, for people.
pub(super) fn objects_of(checked: &Checked, pod: &PodFacts) -> Vec<String> {
    let objects = sources_of(checked, pod).map(|sources| sources.objects(&pod.name));
    objects.iter().flatten().map(ToString::to_string).collect()
}

/// Reason why the config of a pod is not known.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("cannot read {object}: {source}")]
    Unread {
        object: Source,
        #[source]
        source: Arc<Unread>,
    },
    #[error(transparent)]
    Missing(#[from] MissingSource),
}

impl SourceReader {
    /// Reads the objects that are due, and forgets those that are no pod's source any more. `cluster` is the
    /// metadata of the SearchCluster.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        cluster: &ObjectMeta,
        checked: &Checked,
        pods: &[Arc<PodFacts>],
        ages: &Ages<'_>,
    ) {
        let (namespace, name) = namespaced_name(cluster);
        let mut named = BTreeSet::new();
        let mut due: BTreeMap<Source, BTreeSet<String>> = BTreeMap::new();
        for pod in pods {
            let Ok(sources) = sources_of(checked, pod) else { continue };
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
        let read = async |(object, settings): (Source, BTreeSet<String>)| {
            let read = Object::read(api, namespace, &object).await;
            let content = read.map_err(Unread::from).and_then(|read| {
                let Some(read) = read else { return Ok(None) };
                // Sources that are found in pods are mounted there anyway.
                if !checked.sources.is_empty() {
                    may_read(&object, &read, pods, (namespace, name))?;
                }
                Ok(Some(Content::of(&read, &settings)))
            });
            (object, (Instant::now(), content.map_err(Arc::new)))
        };
        self.known.extend(join_limited(due.into_iter().map(read).collect()).await);
    }

    /// Reads all objects at the next observation.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// The checksum of a pod's config in its sources.
    pub(super) fn of(&self, checked: &Checked, pod: &PodFacts) -> restart::Sources {
        let sources = match sources_of(checked, pod) {
            Ok(sources) => sources,
            Err(message) => return restart::Sources::Unknown(message),
        };
        match self.files(sources, &pod.name) {
            Ok(files) => restart::Sources::Checksum(Checksum::of_files(&files).to_string()),
            Err(error) => restart::Sources::Absent(error.to_string()),
        }
    }

    /// The first file in which `mounted` differs from the sources.
    pub(super) fn lagging(
        &self,
        sources: &Sources,
        pod: &str,
        mounted: &Generation,
    ) -> Option<String> {
        self.differing(sources, pod, mounted)?.into_iter().next()
    }

    /// Checksums of those of these configs that differ from the sources, but only in parts that do not count.
    pub(super) fn alike<'a>(
        &self,
        checked: &Checked,
        pod: &PodFacts,
        configs: impl Iterator<Item = &'a Generation>,
    ) -> BTreeSet<String> {
        let Ok(sources) = sources_of(checked, pod) else { return BTreeSet::new() };
        let is_alike = |config: &&Generation| {
            let differing = self.differing(sources, &pod.name, config).unwrap_or_default();
            let mut paths = differing.iter();
            let formed = self.formed(sources, &pod.name);
            let counts = |path: &String| {
                let runs = config.formed.get(path).or_else(|| config.files.get(path));
                let has_only_formed = runs.is_some() && runs == formed.get(path);
                !has_only_formed && !self.ignores(sources, &pod.name, path)
            };
            !differing.is_empty() && !paths.any(counts)
        };
        configs.filter(is_alike).filter_map(|config| config.checksum.clone()).collect()
    }

    /// The files in which a config differs from the sources, if these are known.
    fn differing(
        &self,
        sources: &Sources,
        pod: &str,
        config: &Generation,
    ) -> Option<BTreeSet<String>> {
        let files = self.files(sources, pod).ok()?;
        let path = |file: &FileDigest| String::from_utf8_lossy(&file.path).into_owned();
        let wanted: BTreeMap<String, String> =
            files.iter().map(|file| (path(file), file.sha256.to_string())).collect();
        let all = wanted.keys().chain(config.files.keys());
        Some(all.filter(|path| wanted.get(*path) != config.files.get(*path)).cloned().collect())
    }

    /// True if the file at this path does not count. If no object has it any more, it must not have counted
    /// in any that may have had it.
    fn ignores(&self, sources: &Sources, pod: &str, path: &str) -> bool {
        let known = |object: &Source| match self.known.get(object) {
            Some((_, Ok(Some(content)))) => Some(content),
            Some((_, Ok(None) | Err(_))) | None => None,
        };
        let may_have = sources.keys_at(pod, path);
        let has = |(object, key): &&(Source, String)| {
            known(object).is_some_and(|content| content.digests.contains_key(key))
        };
        let have: Vec<&(Source, String)> = may_have.iter().filter(has).collect();
        let asked = if have.is_empty() { may_have.iter().collect() } else { have };
        let does_not_count = |(object, key): &&(Source, String)| {
            known(object).is_some_and(|content| content.ignore.covers(key))
        };
        !asked.is_empty() && asked.iter().all(does_not_count)
    }

    /// The decisive settings of the configs that the sources of pods have, by checksum.
    pub(super) fn configs<'a>(
        &self,
        checked: &Checked,
        pods: impl Iterator<Item = (&'a restart::Pod, &'a PodFacts)>,
    ) -> restart::KnownConfigs {
        let mut known = restart::KnownConfigs::default();
        for (pod, facts) in pods {
            if let restart::Sources::Checksum(checksum) = &pod.sources
                && !known.is_full()
                && known.of(checksum).is_none()
                && let Ok(sources) = sources_of(checked, facts)
                && let Some(settings) = self.settings(sources, &pod.name)
            {
                known.add(checksum, &settings);
            }
        }
        known
    }

    /// The decisive settings of a pod; `None` if it has no file with settings, or one that cannot be read.
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

    /// Digests of a pod's files without `cluster.initial_master_nodes`, by path; empty if they are not known.
    fn formed(&self, sources: &Sources, pod: &str) -> BTreeMap<String, String> {
        let read = |object: &Source| match self.known.get(object) {
            Some((_, Ok(Some(content)))) => Some(&content.formed),
            Some((_, Ok(None) | Err(_))) | None => None,
        };
        let files = sources.files(pod, read).unwrap_or_default();
        files.into_iter().map(|(path, digest)| (path, digest.to_string())).collect()
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

/// Checks that the Secret may be read for the spec: a pod of the cluster mounts it, or it allows its use. A
/// user who may write a SearchCluster may not always read Secrets.
fn may_read(
    source: &Source,
    object: &Object,
    pods: &[Arc<PodFacts>],
    (namespace, cluster): (&str, &str),
) -> Result<(), NotAllowed> {
    let is_mounted = |pod: &Arc<PodFacts>| pod.mounted_secrets.contains(&source.name);
    if source.kind == SourceKind::ConfigMap || pods.iter().any(is_mounted) {
        return Ok(());
    }
    let none = BTreeMap::new();
    let annotations = object.metadata.annotations.as_ref().unwrap_or(&none);
    allows(namespace, &source.name, annotations, cluster)
}

impl Content {
    /// The state to cache. `settings`: the keys that have the engine's settings.
    fn of(object: &Object, settings: &BTreeSet<String>) -> Self {
        let Object { data, ignore, .. } = object;
        let values = data.iter();
        let decisive = values.clone().filter(|(key, _)| settings.contains(*key));
        let formed = |(key, value): (&String, &Vec<u8>)| {
            let formed = settings.contains(key).then(|| without_initial_masters(value)).flatten();
            (key.clone(), ContentDigest::of(formed.as_ref().unwrap_or(value)))
        };
        Self {
            formed: values.clone().map(formed).collect(),
            settings: decisive.map(|(key, value)| (key.clone(), of(value))).collect(),
            digests: values.map(|(key, value)| (key.clone(), ContentDigest::of(value))).collect(),
            ignore: ignore.clone(),
        }
    }
}

/// Limit of the length of a value, in bytes: nobody writes such a long name or port.
const LONGEST: usize = 256;

/// The decisive settings of a file; `None` if it is not YAML, or has a value that is too long to keep.
fn of(file: &[u8]) -> Option<Settings> {
    let text = std::str::from_utf8(file).ok()?;
    let kept = if text.trim().is_empty() {
        Settings::new()
    } else {
        decisive(&settings(&serde_saphyr::from_str(text).ok()?))
    };
    kept.values().all(|value| value.len() <= LONGEST).then_some(kept)
}

/// One config of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// Checksum of the config, if the manager could read it.
    pub(super) checksum: Option<String>,
    /// Digest of each file that is part of the checksum, by path.
    pub(super) files: BTreeMap<String, String>,
    /// Digest without `cluster.initial_master_nodes` of each file that has it, by path.
    pub(super) formed: BTreeMap<String, String>,
}

/// The configs of a pod whose files are known.
#[derive(Debug, Default)]
pub(super) struct Generations {
    pub(super) mounted: Option<Generation>,
    /// The config that the engine runs on, while it is not known to be the mounted one.
    run: Option<Generation>,
}

impl Generations {
    /// The configs whose files a status lists.
    pub(super) fn of(status: &Status) -> Self {
        let Some(config) = &status.config else { return Self::default() };
        let run = status.run.as_ref().zip(config.run_files.as_ref());
        Self {
            mounted: Some(Generation::of(&config.checksum, &config.files)),
            run: run.map(|(run, files)| Generation::of(&run.checksum, files)),
        }
    }

    /// Both configs, as far as they are known.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Generation> {
        self.mounted.iter().chain(&self.run)
    }
}

impl Generation {
    fn of(checksum: &Option<String>, files: &[ConfigFile]) -> Self {
        let counted = || files.iter().filter(|file| !file.live);
        let formed = |file: &ConfigFile| Some((file.path.clone(), file.formed_sha256.clone()?));
        Self {
            checksum: checksum.clone(),
            files: counted().map(|file| (file.path.clone(), file.sha256.clone())).collect(),
            formed: counted().filter_map(formed).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
