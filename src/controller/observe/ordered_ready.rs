//! Finds out if a StatefulSet would make a deleted pod again. By default (`podManagementPolicy:
//! OrderedReady`) it makes none while one of a lower ordinal is missing, is being deleted, or is not ready.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stayput_restart::{self as restart, Ledger, MemberStep, Time, UpdateStep};

use super::owners::Owners;
use crate::pods::PodFacts;
use stayput_kube_access::workload::{Set, ordinal};

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
