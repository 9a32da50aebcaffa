//! The pod of a member: its own, or the one that replaced it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Member, Pod, Snapshot};

/// The members, by uid of their current pod, or of their own if there is none.
pub(super) fn by_pod(snapshot: &Snapshot) -> BTreeMap<&str, &Member> {
    let listed: BTreeSet<&str> = snapshot.pods.iter().map(|pod| pod.uid.as_str()).collect();
    let (there, gone): (Vec<&Member>, Vec<&Member>) =
        snapshot.ledger.members().partition(|member| listed.contains(member.pod_uid.as_str()));
    let names: BTreeSet<&str> = gone.iter().map(|member| member.pod.as_str()).collect();
    let replacing: BTreeMap<&str, &Pod> = snapshot
        .pods
        .iter()
        .filter(|pod| names.contains(pod.name.as_str()))
        .map(|pod| (pod.name.as_str(), pod))
        .collect();
    let mut members: BTreeMap<&str, &Member> =
        there.into_iter().map(|member| (member.pod_uid.as_str(), member)).collect();
    for member in gone {
        let pod = replacing.get(member.pod.as_str());
        members.insert(pod.map_or(&member.pod_uid, |pod| &pod.uid), member);
    }
    members
}

/// Uids of the current pods of the members under way.
pub(super) fn under_way(snapshot: &Snapshot) -> BTreeSet<&str> {
    let is_under_way = |(_, member): &(&str, &Member)| member.is_under_way();
    by_pod(snapshot).into_iter().filter(is_under_way).map(|(uid, _)| uid).collect()
}
