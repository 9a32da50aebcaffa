//! The Secrets and ConfigMaps that containers, and init containers, read when they are started. Keeps only
//! digests of their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use stayput_api::checksum::ContentDigest;
use stayput_pod_update::{
    Age, Content, ContentWays, EarlierDigests, IGNORE, Ignore, Other, Source, SourceKind,
    UpdateStep, compare_content, with_content,
};
use stayput_restart::{Known, Operator, OperatorKind, PodUpdate, Policy, annotation};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::observe::snapshot::Ages;
use crate::pods::{PodFacts, others};

/// Cached state of the objects.
#[derive(Debug, Default)]
pub(super) struct ContentReader {
    /// Time of the last read of each object, and its state, if it was ever read.
    known: BTreeMap<Source, (Instant, Option<Seen>)>,
}

impl ContentReader {
    /// Reads the objects that are due, and forgets those that no pod uses any more.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        pods: &[Arc<PodFacts>],
        ages: &Ages<'_>,
    ) {
        let mut used = BTreeSet::new();
        let mut due = BTreeSet::new();
        for pod in pods {
            for one in pod.starts.iter().flat_map(|start| &start.uses) {
                let read = self.known.get(&one.source).map(|(read, _)| *read);
                if !due.contains(&one.source) && ages.is_over(&pod.uid, read) {
                    due.insert(one.source.clone());
                }
                if !used.contains(&one.source) {
                    used.insert(one.source.clone());
                }
            }
        }
        self.known.retain(|source, _| used.contains(source));
        let read = async |source: Source| {
            let seen = match Object::read(api, namespace, &source).await {
                Ok(object) => object.as_ref().map(Seen::of),
                Err(error) => {
                    tracing::warn!("{source}, which pods use, cannot be read: {error}");
                    None
                }
            };
            (source, seen)
        };
        for (source, seen) in join_limited(due.into_iter().map(read).collect()).await {
            let before = self.known.remove(&source).and_then(|(_, before)| before);
            let seen = match seen {
                Some(seen) => Some(seen.after(before)),
                None => before.map(Seen::gone),
            };
            self.known.insert(source, (Instant::now(), seen));
        }
    }

    /// The pod's update, with the changed content that its container, or the pod, was started with; or with
    /// the missing note of that content.
    pub(super) fn added_to(
        &self,
        update: Known<Option<PodUpdate>>,
        pod: &PodFacts,
        container: &str,
        policy: &Policy,
    ) -> Known<Option<PodUpdate>> {
        let start = pod.starts.iter().find(|start| start.container == container);
        let (Some(start), Some(owner)) = (start, &pod.owner) else { return update };
        let (Ok(known), Some(started)) = (&update, start.started) else { return update };
        let others: Vec<Other> = others(&pod.starts, container).collect();
        if start.uses.is_empty() && others.is_empty() {
            return update;
        }
        let mut wanted = Content::default();
        let mut ages = BTreeMap::new();
        for used in start.uses.iter().chain(others.iter().flat_map(|other| &other.uses)) {
            let seen = self.known.get(&used.source).and_then(|(_, seen)| seen.as_ref());
            // An object that is absent, or cannot be read, is unknown.
            if let Some(seen) = seen.filter(|seen| seen.is_there) {
                wanted.add(used.source.clone(), seen.digests.clone(), seen.ignore.clone());
                wanted.add_earlier(used.source.clone(), seen.earlier.clone());
                ages.insert(used.source.clone(), seen.age);
            }
        }
        let noted = pod.annotations.get(annotation::CONTENT);
        let noted = noted.map(String::as_str);
        let compared = compare_content(&start.uses, &others, &wanted, &ages, started, noted);
        // ECK has changed the template for secure settings and scripts, too.
        let operator = Operator::of_labels(&pod.labels).filter(|_| known.is_some());
        let is_replaced = operator.is_some_and(|operator| operator.kind == OperatorKind::Eck);
        let ways = ContentWays {
            is_made_anew: start.is_made_anew,
            may_replace: is_replaced || policy.update.contains(&UpdateStep::Replace),
        };
        Ok(with_content(known.clone(), compared, noted, &owner.revision, ways))
    }
}

/// Length of a digest that is noted on pods, in characters.
const NOTED: usize = 8;

/// Cached state of an object, also after it is gone.
#[derive(Debug)]
struct Seen {
    is_there: bool,
    /// Digest of each key's content, as it is noted on pods.
    digests: BTreeMap<String, String>,
    /// Digests of the same content in deleted objects of this name.
    earlier: EarlierDigests,
    ignore: Ignore,
    age: Age,
    /// Whole digest of each key's content, without the uid: never leaves this process.
    contents: BTreeMap<String, ContentDigest>,
}

impl Seen {
    fn of(object: &Object) -> Self {
        let Object { metadata, data, ignore } = object;
        // A user who may read pods, but not Secrets, does not know the uid: without it a weak password could
        // be guessed by its digest.
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let digest = |key: &String, value: &[u8]| {
            let framed = [format!("{uid}\n{}\n{key}\n", key.len()).as_bytes(), value].concat();
            ContentDigest::of(&framed).to_string().chars().take(NOTED).collect()
        };
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
        let changed = metadata.managed_fields.iter().flatten();
        let changed = changed.map(|fields| fields.time.as_ref().map(|time| time.0.as_second()));
        Self {
            is_there: true,
            digests: data.iter().map(|(key, value)| (key.clone(), digest(key, value))).collect(),
            earlier: EarlierDigests::new(),
            ignore: ignore.clone(),
            age: Age {
                created: created.unwrap_or(i64::MAX),
                // If one of them has no time, the time of the last change is unknown.
                changed: changed.max_by_key(|time| time.unwrap_or(i64::MAX)).flatten(),
            },
            contents: data
                .iter()
                .map(|(key, value)| (key.clone(), ContentDigest::of(value)))
                .collect(),
        }
    }

    /// Takes over the digests of `before` for unchanged content: the object may have been made again.
    fn after(mut self, before: Option<Self>) -> Self {
        let Some(mut before) = before else { return self };
        for (key, digest) in &self.digests {
            if before.contents.get(key) != self.contents.get(key) {
                continue;
            }
            let mut same = before.earlier.remove(key).unwrap_or_default();
            same.extend(before.digests.remove(key).filter(|before| before != digest));
            if !same.is_empty() {
                self.earlier.insert(key.clone(), same);
            }
        }
        self
    }

    /// The state of an object that is gone: another one may be made with the same content.
    fn gone(self) -> Self {
        Self { is_there: false, ..self }
    }
}

/// A Secret or ConfigMap, as it is now.
pub(super) struct Object {
    pub(super) metadata: ObjectMeta,
    /// The bytes of each key.
    pub(super) data: BTreeMap<String, Vec<u8>>,
    /// The keys that do not count, by its annotation.
    pub(super) ignore: Ignore,
}

impl Object {
    /// Reads the object, if it exists.
    pub(super) async fn read(
        api: &Apiserver,
        namespace: &str,
        source: &Source,
    ) -> Result<Option<Self>, ApiError> {
        let name = &source.name;
        Ok(match source.kind {
            SourceKind::Secret => api.objects(namespace).find(name).await?.map(Self::of_secret),
            SourceKind::ConfigMap => api.objects(namespace).find(name).await?.map(Self::of_map),
        })
    }

    fn of_secret(secret: Secret) -> Self {
        let data = secret.data.into_iter().flatten().map(|(key, value)| (key, value.0));
        Self::new(secret.metadata, data.collect())
    }

    fn of_map(map: ConfigMap) -> Self {
        let text = map.data.into_iter().flatten().map(|(key, value)| (key, value.into_bytes()));
        let binary = map.binary_data.into_iter().flatten().map(|(key, value)| (key, value.0));
        Self::new(map.metadata, text.chain(binary).collect())
    }

    pub(super) fn new(metadata: ObjectMeta, data: BTreeMap<String, Vec<u8>>) -> Self {
        let annotations = metadata.annotations.as_ref();
        let ignore = annotations.and_then(|all| all.get(IGNORE)).map(String::as_str);
        Self { ignore: Ignore::parse(ignore), metadata, data }
    }
}

#[cfg(test)]
mod tests;
