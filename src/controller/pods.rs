//! The pods of one SearchCluster, from the watch and from the answers to our own patches. Keeps only the
//! facts that decisions need, because there may be ten thousand pods.

mod facts;
mod live;
mod start;
mod unstarted;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;

pub(super) use facts::{Owner, PodFacts, Reading};
pub(super) use live::{LiveFacts, is_data_elsewhere};
pub(super) use start::others;

/// The known pods.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// The pods by name.
    known: BTreeMap<String, Arc<PodFacts>>,
    /// The part of a new list that has arrived.
    listing: Option<BTreeMap<String, Arc<PodFacts>>>,
    complete: bool,
}

impl Pods {
    /// True if a whole list has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// All pods, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<PodFacts>> {
        self.known.values()
    }

    /// The pod with this uid.
    pub(super) fn by_uid(&self, uid: &str) -> Option<&Arc<PodFacts>> {
        self.known.values().find(|facts| facts.uid == uid)
    }

    /// Applies an event of the watch. True if a decision may depend on the difference.
    pub(super) fn apply(&mut self, event: Event<Pod>, reading: &Reading) -> bool {
        match event {
            Event::Apply(pod) => PodFacts::of(&pod, reading).is_some_and(|facts| self.put(facts)),
            Event::Delete(pod) => {
                let gone = self.known.get(pod.metadata.name.as_deref().unwrap_or_default());
                let same = gone.is_some_and(|facts| Some(&facts.uid) == pod.metadata.uid.as_ref());
                if same {
                    self.known.remove(pod.metadata.name.as_deref().unwrap_or_default());
                }
                same
            }
            Event::Init => {
                self.listing = Some(BTreeMap::new());
                false
            }
            Event::InitApply(pod) => {
                if let (Some(listing), Some(facts)) =
                    (&mut self.listing, PodFacts::of(&pod, reading))
                {
                    listing.insert(facts.name.clone(), Arc::new(facts));
                }
                false
            }
            Event::InitDone => self.replace_by_list(),
        }
    }

    /// Stores the facts of one pod, unless newer ones are known: the watch lags behind the answers to our own
    /// patches. True if a decision may depend on the difference.
    pub(super) fn put(&mut self, facts: PodFacts) -> bool {
        match self.known.get(&facts.name) {
            Some(known) if known.uid == facts.uid && known.version >= facts.version => false,
            Some(known) => {
                let matters = known.differs(&facts);
                self.known.insert(facts.name.clone(), Arc::new(facts));
                matters
            }
            None => {
                self.known.insert(facts.name.clone(), Arc::new(facts));
                true
            }
        }
    }

    /// Replaces all pods by the new list, except those that are newer than it.
    fn replace_by_list(&mut self) -> bool {
        let Some(mut listing) = self.listing.take() else { return false };
        for (name, known) in &self.known {
            if let Some(listed) = listing.get_mut(name)
                && listed.uid == known.uid
                && listed.version < known.version
            {
                *listed = known.clone();
            }
        }
        let matters = !self.complete
            || self.known.len() != listing.len()
            || listing
                .iter()
                .any(|(name, new)| self.known.get(name).is_none_or(|known| known.differs(new)));
        self.known = listing;
        self.complete = true;
        matters
    }
}
