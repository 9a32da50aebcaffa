//! Starts engines that we stopped while the apiserver does not answer, or the Lease cannot be renewed.
//! Another replica may lead by then. A start in the ledger may still be sent: whatever the other replica has
//! asked for has a higher sequence, and of two equal ones the second does nothing.
//!
//! An apiserver that hangs holds up each call for ten seconds, and a look makes several. So starts are also
//! sent beside a look that takes long.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::concurrency::join_limited;
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::metrics::{Metrics, Side};
use crate::observe::STATUS_TIMEOUT;
use crate::pods::PodFacts;
use stayput_http::manager_client::{ManagerClient, ask_all};
use stayput_kube_access::cluster::SearchCluster;
use stayput_restart::{Action, Manager, annotation, start_request, starts_in_ledger};

/// Interval at which the starts are sent beside a look; the first time after as long.
const SEND_INTERVAL: Duration = Duration::from_millis(500);

/// The starts of the last written ledger, and the clients to send them.
pub(super) struct OwedStarts {
    cluster: Arc<SearchCluster>,
    rollback: bool,
    /// Uids of the pods whose nodes a person wants stopped.
    to_be_stopped: BTreeSet<String>,
    /// Clients of the managers that may have to start their engine, by uid of the pod.
    clients: BTreeMap<String, ManagerClient>,
    metrics: Arc<Metrics>,
}

impl OwedStarts {
    pub(super) fn of(cx: &Context, cluster: &Arc<SearchCluster>, spec: &EffectiveSpec) -> Self {
        let uids = cluster.status.iter().flat_map(|status| status.ledger.unreleased_pods());
        let client =
            |uid: &str| Some((uid.to_owned(), cx.observer.facts.managers.client(uid)?.clone()));
        let is_to_be_stopped = |pod: &&Arc<PodFacts>| {
            spec.spec.stopped.contains(&pod.node) || annotation::keeps_stopped(&pod.annotations)
        };
        let stopped = cx.observer.pods.iter().filter(is_to_be_stopped);
        Self {
            to_be_stopped: stopped.map(|pod| pod.uid.clone()).collect(),
            clients: uids.filter_map(client).collect(),
            cluster: Arc::clone(cluster),
            rollback: spec.checked.policy.rollback,
            metrics: Arc::clone(&cx.clients.metrics),
        }
    }

    /// Awaits the look, and sends the starts beside it if it takes long.
    pub(super) async fn beside<T>(&self, look: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            done = look => done,
            never = self.send_again_and_again() => match never {},
        }
    }

    async fn send_again_and_again(&self) -> Infallible {
        if self.clients.is_empty() {
            return std::future::pending().await;
        }
        loop {
            sleep(SEND_INTERVAL).await;
            self.send().await;
        }
    }

    /// Asks the managers for their status, and sends the starts that are due. Failures are logged: the
    /// managers start their engines by themselves later.
    pub(super) async fn send(&self) {
        let Some(status) = &self.cluster.status else { return };
        let ask = |(uid, client): (&String, &ManagerClient)| {
            let client = client.clone();
            (uid.clone(), async move { client.status().await.map(|answer| answer.status) })
        };
        let answers = ask_all(self.clients.iter().map(ask).collect(), STATUS_TIMEOUT).await;
        let managers: BTreeMap<String, Manager> = answers
            .into_iter()
            .filter_map(|(uid, status)| Some((uid, Manager::from(&status.ok()?))))
            .collect();
        let starts = starts_in_ledger(
            &status.ledger,
            self.rollback,
            |uid| managers.get(uid).cloned(),
            |uid| self.to_be_stopped.contains(uid),
        );
        if starts.is_empty() {
            return;
        }
        tracing::warn!("sending the starts in the ledger without waiting for the look");
        join_limited(starts.into_iter().map(|start| self.start(start)).collect()).await;
    }

    async fn start(&self, start: Action) {
        let Action::Start { uid, sequence, checksum, config } = start else { return };
        let Some(client) = self.clients.get(&uid) else { return };
        let request = start_request(&uid, sequence, checksum.as_deref(), config);
        let answer = client.start(&request, None).await;
        self.metrics.count_request(Side::Manager, "start", answer.is_ok());
        if let Err(error) = answer {
            tracing::warn!(pod.uid = uid, "cannot send a start: {error}");
        }
    }
}
