//! Pods that are not there: those that a StatefulSet wants and does not make (a quota, a webhook), those that
//! it would not make again yet (`podManagementPolicy: OrderedReady`), and those that the selector no longer
//! selects.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::{Selector, SelectorExt};
use stayput_kube_access::stateful_set::{Set, ordinal};
use stayput_restart::{self as restart, Ledger, MemberStep, MissingPod, Time, UpdateStep};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::observe::owners::Owners;
use crate::pods::PodFacts;

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

/// For each set, by uid: the lowest ordinal that makes pods of higher ones wait, and the reason.
#[derive(Debug, Default)]
pub(super) struct OrderedReady {
    first: BTreeMap<String, (i64, String)>,
}

impl OrderedReady {
    /// Checks the sets of these pods, if any pod is to be replaced.
    pub(super) fn of(
        owners: &Owners,
        pods: &[Arc<PodFacts>],
        seen: &[restart::Pod],
        ledger: &Ledger,
        now: Time,
    ) -> Self {
        if !seen.iter().any(is_replaced) {
            return Self::default();
        }
        let mut sets: BTreeMap<&str, Vec<&PodFacts>> = BTreeMap::new();
        for pod in pods {
            if let Some(owner) = &pod.owner {
                sets.entry(&owner.uid).or_default().push(pod);
            }
        }
        // Pods under way come back, in the order of the set.
        let ours = ledger.members().filter(|member| member.step == MemberStep::Restarting);
        let ours: BTreeSet<&str> = ours.map(|member| member.pod_uid.as_str()).collect();
        let first = sets.into_iter().filter_map(|(uid, pods)| {
            let set = owners.set_of(pods.first()?)?;
            Some((uid.to_owned(), first_awaited(set, &pods, &ours, now)?))
        });
        Self { first: first.collect() }
    }

    /// Reason why the set would make no pod in the place of this one, if the pod is to be replaced and has to
    /// wait.
    pub(super) fn why_not(&self, facts: &PodFacts, pod: &restart::Pod) -> Option<String> {
        let owner = facts.owner.as_ref().filter(|_| is_replaced(pod))?;
        let (awaited, why) = self.first.get(&owner.uid)?;
        let is_later = ordinal(&facts.name).is_some_and(|ordinal| ordinal > *awaited);
        is_later.then(|| {
            format!(
                "StatefulSet {} would not recreate {}, since {why}: it makes its \
                 pods in order (podManagementPolicy: OrderedReady)",
                owner.name, facts.name
            )
        })
    }
}

fn is_replaced(pod: &restart::Pod) -> bool {
    matches!(&pod.update, Ok(Some(update)) if update.step == UpdateStep::Replace)
}

/// The lowest ordinal that a set in order waits for, and the reason.
fn first_awaited(
    set: &Set,
    pods: &[&PodFacts],
    ours: &BTreeSet<&str>,
    now: Time,
) -> Option<(i64, String)> {
    if !set.is_ordered {
        return None;
    }
    let pods: BTreeMap<i64, &PodFacts> =
        pods.iter().filter_map(|pod| Some((ordinal(&pod.name)?, *pod))).collect();
    set.ordinals().find_map(|ordinal| {
        let why = match pods.get(&ordinal) {
            None => format!("{}-{ordinal} does not exist", set.name),
            Some(pod) if ours.contains(pod.uid.as_str()) => return None,
            Some(pod) if pod.terminating => format!("{} is being deleted", pod.name),
            Some(pod) if !pod.ready => format!("{} is not ready", pod.name),
            Some(pod) if is_too_new(set, pod, now) => format!(
                "{} is not ready for {} s yet (minReadySeconds)",
                pod.name,
                set.min_ready / 1000
            ),
            Some(_) => return None,
        };
        Some((ordinal, why))
    })
}

fn is_too_new(set: &Set, pod: &PodFacts, now: Time) -> bool {
    set.min_ready > 0 && pod.ready_since.is_none_or(|since| now.since(since) < set.min_ready)
}

/// Uids of the existing pods that this ledger has debts to. If pods cannot be listed, all count as existing.
pub(super) async fn read(api: &Apiserver, namespace: &str, ledger: &Ledger) -> BTreeSet<String> {
    let owed: BTreeSet<String> = ledger.owed_pods().map(str::to_owned).collect();
    if owed.is_empty() {
        return owed;
    }
    match api.objects::<Pod>(namespace).list(&ListParams::default()).await {
        Ok(pods) => {
            let uids = pods.items.into_iter().filter_map(|pod| pod.metadata.uid);
            uids.filter(|uid| owed.contains(uid)).collect()
        }
        Err(_) => owed,
    }
}

#[cfg(test)]
mod tests;
