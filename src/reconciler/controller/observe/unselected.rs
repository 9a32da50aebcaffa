//! Pods of a SearchCluster whose selector was edited and matches no pod any more: as long as they are
//! there, what is owed to them stays owed.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stayput_restart::Ledger;

use crate::controller::apiserver::Apiserver;

/// Uids of the pods of this ledger that are owed something and are there. A pod that nobody can ask
/// about counts as there.
pub(super) async fn read(api: &Apiserver, namespace: &str, ledger: &Ledger) -> BTreeSet<String> {
    let owed: BTreeSet<String> = ledger.owed_pods().map(str::to_owned).collect();
    if owed.is_empty() {
        return owed;
    }
    match api.pods(namespace).await {
        Ok(pods) => {
            let uids = pods.items.into_iter().filter_map(|pod| pod.metadata.uid);
            uids.filter(|uid| owed.contains(uid)).collect()
        }
        Err(_) => owed,
    }
}
