//! The uids of the volume claims of replaced pods: the replacement must be on the same disks, and a claim
//! that was deleted and made again has the same name.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use stayput_restart::{Known, Ledger, Member, UpdateStep};

use super::snapshot::unknown;
use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::join_limited;
use crate::pods::PodFacts;

/// Uids of volume claims by name; leaves out those that we may not read.
pub(super) type Uids = BTreeMap<String, String>;

/// The claims of replacements, by uid of the pod. They are read once the pod is on a Kubernetes node: from
/// then on the claims stay as long as the pod.
#[derive(Debug, Default)]
pub(super) struct Claims {
    known: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    uids: Known<Uids>,
    /// True if the pod was on a Kubernetes node before the uids were read.
    will_stay: bool,
}

impl Claims {
    /// Reads the claims of the replacements of members under way, and forgets all others.
    pub(super) async fn read(&mut self, api: &Apiserver, ledger: &Ledger, pods: &[Arc<PodFacts>]) {
        let replaced: Vec<&Member> = ledger.under_way().filter(is_replaced).collect();
        let has_come = |pod: &&Arc<PodFacts>| {
            replaced.iter().any(|member| member.pod == pod.name && member.pod_uid != pod.uid)
        };
        let come: Vec<&Arc<PodFacts>> = pods.iter().filter(has_come).collect();
        self.known.retain(|uid, seen| {
            seen.will_stay && seen.uids.is_ok() && come.iter().any(|pod| pod.uid == *uid)
        });
        let due = come.iter().filter(|pod| !self.known.contains_key(&pod.uid));
        let read = async |pod: &PodFacts| {
            let node = pod.live.as_ref().and_then(|live| live.kubernetes_node.as_ref());
            let seen = Seen { uids: uids(api, pod).await, will_stay: node.is_some() };
            (pod.uid.clone(), seen)
        };
        let found = join_limited(due.map(|pod| read(pod)).collect()).await;
        self.known.extend(found);
    }

    /// The claims of this pod; empty for a pod that is no replacement.
    pub(super) fn of(&self, uid: &str) -> Known<Uids> {
        self.known.get(uid).map_or_else(|| Ok(Uids::new()), |seen| seen.uids.clone())
    }
}

fn is_replaced(member: &&Member) -> bool {
    member.update.as_ref().is_some_and(|fixed| fixed.update.step == UpdateStep::Replace)
}

async fn uids(api: &Apiserver, pod: &PodFacts) -> Known<Uids> {
    let mut uids = Uids::new();
    for name in pod.live.iter().flat_map(|live| live.claims()) {
        let claim: Result<PersistentVolumeClaim, ApiError> = api.get(&pod.namespace, name).await;
        match claim {
            Ok(claim) => uids.extend(claim.metadata.uid.map(|uid| (name.to_owned(), uid))),
            Err(error) if error.is_forbidden() => {}
            Err(error) => {
                return Err(unknown(format!("the volume claim {name} cannot be read: {error}")));
            }
        }
    }
    Ok(uids)
}
