//! The Secrets and ConfigMaps that containers, and init containers, read when they are started. Keeps only
//! digests of their contents.

mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stayput_pod_update::{
    Content, ContentWays, Other, Source, UpdateStep, compare_content, with_content,
};
use tokio::time::Instant;

use super::ages::Ages;
use super::objects::Object;
use crate::apiserver::Apiserver;
use crate::concurrency::join_limited;
use crate::pods::{PodFacts, others};
use seen::Seen;
use stayput_restart::{Known, PodUpdate, Policy, annotation};

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
        let ways = ContentWays {
            is_made_anew: start.is_made_anew,
            may_replace: policy.update.contains(&UpdateStep::Replace),
        };
        Ok(with_content(known.clone(), compared, noted, &owner.revision, ways))
    }
}
