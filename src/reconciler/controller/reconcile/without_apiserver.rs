//! What is done while the apiserver does not answer, or refuses what a look needs, or the Lease cannot be
//! renewed: engines that we
//! stopped are started. Another replica may lead by then. A start in the ledger may still be sent:
//! whatever the other has asked for has a higher sequence, and of two equal ones the second does
//! nothing.

use std::collections::BTreeMap;

use crate::cluster::SearchCluster;
use crate::controller::context::Context;
use crate::controller::effective_spec::EffectiveSpec;
use crate::controller::execute::Executor;
use crate::controller::observe::STATUS_TIMEOUT;
use crate::controller::status_report::ledger_of;
use stayput_net::manager_client::fleet;
use stayput_restart::{Action, Manager, starts_in_ledger};

/// Asks the managers under way for their status, and sends the starts that the ledger holds, as it
/// was written last. Failures are logged: the managers start their engines by themselves later.
pub(super) async fn send_starts(cx: &mut Context, cluster: &SearchCluster, spec: &EffectiveSpec) {
    let ledger = ledger_of(cluster);
    let call = |uid: &str| {
        let client = cx.observer.managers.client(uid)?.clone();
        Some((uid.to_owned(), async move { client.status().await.map(|answer| answer.status) }))
    };
    let answers = fleet::ask_all(ledger.busy_pods().filter_map(call).collect(), STATUS_TIMEOUT);
    let managers: BTreeMap<String, Manager> = answers
        .await
        .into_iter()
        .filter_map(|(uid, status)| Some((uid, Manager::from(&status.ok()?))))
        .collect();
    let rollback = spec.checked.policy.rollback;
    let starts = starts_in_ledger(&ledger, rollback, |uid| managers.get(uid).cloned());
    if starts.is_empty() {
        return;
    }
    tracing::warn!("the apiserver gives no good answer; the starts in the ledger are sent");
    let executor = Executor::new(cx, cluster, &spec.checked.policy);
    executor.execute_all(&starts.iter().collect::<Vec<&Action>>()).await;
}
