//! The objects that operators make the pods from, read at the ages of other facts: an `Elasticsearch` or an
//! `OpenSearchCluster`. One that cannot be read is unknown, with the reason, and holds nothing up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use stayput_kube_access::operator_object::{api_resource, facts};
use stayput_restart::{Operator, OperatorFacts, OperatorKind, OperatorObject};
use tokio::time::{Instant, timeout};

use crate::apiserver::Apiserver;
use crate::concurrency::join_limited;
use crate::observe::snapshot::{Ages, unknown};
use crate::pods::PodFacts;

/// Time for one answer: a definition may have a conversion webhook that hangs, and nothing waits for it.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Least time until an object is read again that could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Kind and name of an object.
pub(crate) type Key = (OperatorKind, String);

/// The objects, as they were read last.
#[derive(Debug, Default)]
pub(crate) struct OperatorObjects {
    known: BTreeMap<Key, Answer>,
}

#[derive(Debug)]
struct Answer {
    at: Instant,
    /// Version and facts, or why they are unknown.
    object: Result<(String, OperatorFacts), String>,
}

impl OperatorObjects {
    /// Reads the objects of these pods that are due.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        namespace: &str,
        pods: &[Arc<PodFacts>],
        ages: &Ages<'_>,
    ) {
        let mut first_pods: BTreeMap<Key, &str> = BTreeMap::new();
        for pod in pods {
            if let Some(Operator { kind, object, .. }) = Operator::of_labels(&pod.labels) {
                first_pods.entry((kind, object)).or_insert(&pod.uid);
            }
        }
        self.known.retain(|key, _| first_pods.contains_key(key));
        first_pods.retain(|key, uid| self.is_due(key, uid, ages));
        let read = async |key: Key| {
            let object = read(api, namespace, &key).await;
            (key, Answer { at: Instant::now(), object })
        };
        self.known.extend(join_limited(first_pods.into_keys().map(read).collect()).await);
    }

    fn is_due(&self, key: &Key, uid: &str, ages: &Ages<'_>) -> bool {
        let known = self.known.get(key);
        let failed = known.is_some_and(|answer| answer.object.is_err());
        let is_early = failed && known.is_some_and(|answer| answer.at.elapsed() < RETRY_AFTER);
        !is_early && ages.is_over(uid, known.map(|answer| answer.at))
    }

    /// The objects, for a snapshot.
    pub(super) fn objects(&self) -> Vec<OperatorObject> {
        let object = |((kind, name), answer): (&Key, &Answer)| {
            let facts = answer.object.clone().map(|(_, facts)| facts).map_err(unknown);
            OperatorObject { kind: *kind, name: name.clone(), facts }
        };
        self.known.iter().map(object).collect()
    }

    /// Versions of the objects that were read.
    pub(crate) fn versions(&self) -> Vec<(Key, String)> {
        let version = |(key, answer): (&Key, &Answer)| {
            let (version, _) = answer.object.as_ref().ok()?;
            Some((key.clone(), version.clone()))
        };
        self.known.iter().filter_map(version).collect()
    }

    /// Reads this object again at the next observation.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.known.remove(key);
    }
}

async fn read(
    api: &Apiserver,
    namespace: &str,
    (kind, name): &Key,
) -> Result<(String, OperatorFacts), String> {
    let objects = api.dynamic(&api_resource(*kind), namespace);
    match timeout(ANSWER_TIME, objects.get(name)).await {
        Ok(Ok(object)) => Ok((object.resource_version().unwrap_or_default(), facts(&object))),
        // The object, or the definition of its kind.
        Ok(Err(error)) if error.is_not_found() => {
            Err(format!("{} {name} is not there", kind.object()))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("the apiserver gave no answer within {} s", ANSWER_TIME.as_secs())),
    }
}
