//! Pods of a SearchCluster whose selector was edited and matches no pod any more: as long as they exist,
//! their debts stay.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stayput_restart::Ledger;

use crate::apiserver::Apiserver;

/// Uids of the existing pods that this ledger has debts to. If pods cannot be listed, all count as existing.
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
