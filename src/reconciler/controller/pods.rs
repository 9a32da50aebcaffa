//! The pods of one SearchCluster as the watch and our own patches have shown them: of each only what
//! decisions need, because there may be ten thousand.

mod facts;
mod probes;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;

pub(super) use facts::Facts;

/// What is known of the pods.
#[derive(Debug, Default)]
pub(super) struct Pods {
    /// By name.
    known: BTreeMap<String, Arc<Facts>>,
    /// What a new list has shown so far.
    listing: Option<BTreeMap<String, Arc<Facts>>>,
    complete: bool,
}

impl Pods {
    /// Whether a whole list was seen.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// All of them, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Facts>> {
        self.known.values()
    }

    /// The pod with this uid.
    pub(super) fn by_uid(&self, uid: &str) -> Option<&Arc<Facts>> {
        self.known.values().find(|facts| facts.uid == uid)
    }

    /// Takes in what the watch says; whether a decision could be another one now.
    pub(super) fn hear(&mut self, event: Event<Pod>, label: Option<&str>) -> bool {
        match event {
            Event::Apply(pod) => Facts::of(&pod, label).is_some_and(|facts| self.put(facts)),
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
                if let (Some(listing), Some(facts)) = (&mut self.listing, Facts::of(&pod, label)) {
                    listing.insert(facts.name.clone(), Arc::new(facts));
                }
                false
            }
            Event::InitDone => self.swap(),
        }
    }

    /// Takes in one pod, unless what is known of it is newer: the watch lags behind the answers of
    /// our own patches.
    pub(super) fn put(&mut self, facts: Facts) -> bool {
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

    /// A new list replaces everything but what is newer than it.
    fn swap(&mut self) -> bool {
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
