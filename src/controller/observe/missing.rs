//! Pods that StatefulSets want and that are absent, although there was time to make them: no pod shows who
//! refuses them (a quota, a webhook).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use kube::core::{Selector, SelectorExt};
use stayput_restart::MissingPod;
use tokio::time::Instant;

use super::owners::Owners;
use crate::apiserver::ApiError;
use crate::pods::PodFacts;
use stayput_kube_access::workload::Set;

/// Time that a pod may be absent: its set makes it again at once, unless that is refused.
const TIME_TO_MAKE: Duration = Duration::from_secs(10);

/// The absent pods.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Time since which each pod, by set and ordinal, should be made now and is absent.
    since: BTreeMap<(String, i64), Instant>,
}

impl Missing {
    /// The sets of absent pods. They have to be read each time: a set that does not want the pod any more has
    /// removed it.
    pub(super) fn sets(&self) -> BTreeSet<String> {
        self.since.keys().map(|(set, _)| set.clone()).collect()
    }

    /// The pods that this selector selects and that are absent for longer than [`TIME_TO_MAKE`].
    pub(super) fn look(
        &mut self,
        owners: &Owners,
        pods: &[Arc<PodFacts>],
        selector: &Selector,
        now: Instant,
    ) -> Vec<MissingPod> {
        let pods: BTreeMap<&str, &PodFacts> =
            pods.iter().map(|pod| (pod.name.as_str(), &**pod)).collect();
        for (name, set) in owners.sets() {
            self.look_at(name, set, &pods, selector, now);
        }
        let is_over = |since: &Instant| now.duration_since(*since) >= TIME_TO_MAKE;
        let over = self.since.iter().filter(|(_, since)| is_over(since));
        let missing = over.map(|((set, ordinal), _)| MissingPod {
            name: format!("{set}-{ordinal}"),
            set: set.clone(),
        });
        missing.collect()
    }

    fn look_at(
        &mut self,
        name: &str,
        set: Result<Option<&Set>, &ApiError>,
        pods: &BTreeMap<&str, &PodFacts>,
        selector: &Selector,
        now: Instant,
    ) {
        // Desired pods unknown: keep the previous list, without those that exist now.
        let Ok(set) = set else {
            self.since.retain(|(set, ordinal), _| {
                set != name || !pods.contains_key(format!("{name}-{ordinal}").as_str())
            });
            return;
        };
        let all = mem::take(&mut self.since).into_iter();
        let (before, others): (BTreeMap<_, _>, _) = all.partition(|((set, _), _)| set == name);
        self.since = others;
        let Some(set) = set.filter(|set| !set.is_deleted) else { return };
        // A set in order makes no pod before those of lower ordinals are ready.
        let mut waits = false;
        for ordinal in set.ordinals() {
            let (pod_name, labels) = set.pod(ordinal);
            if let Some(pod) = pods.get(pod_name.as_str()) {
                waits |= set.is_ordered && (!pod.ready || pod.terminating);
                continue;
            }
            let key = (name.to_owned(), ordinal);
            let known = before.get(&key).copied();
            let is_over = known.is_some_and(|since| now.duration_since(since) >= TIME_TO_MAKE);
            if selector.matches(&labels) && (is_over || !waits) {
                self.since.insert(key, known.unwrap_or(now));
            }
        }
    }

    /// Time until the next pod is absent for too long, if one is absent and has time left.
    pub(crate) fn due_in(&self, now: Instant) -> Option<Duration> {
        let ends = self.since.values().map(|since| *since + TIME_TO_MAKE);
        ends.filter(|end| *end > now).map(|end| end - now).min()
    }
}
