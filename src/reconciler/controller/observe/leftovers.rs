//! At rest the engine is asked for little and seldom: only whether a late request of ours has left
//! something there. A reconciler that has just begun looks as well, because it knows of no requests
//! of the one before it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::ages::Ages;
use super::engine::endpoints;
use super::{Observer, snapshot};
use crate::cluster::SearchCluster;
use crate::controller::pods::Facts;
use stayput_restart::has_leftovers;

/// How often the engine is asked.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long all answers together may take: what people ask for waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// When the engine was asked last, if nothing was found then.
#[derive(Debug, Default)]
pub(super) struct Looked(Option<Instant>);

impl Looked {
    fn is_due(&self) -> bool {
        self.0.is_none_or(|at| at.elapsed() >= INTERVAL)
    }
}

impl Observer {
    /// Whether the engine shows changes of ours that the ledger does not explain. What cannot be
    /// read is looked for the next time.
    pub(in crate::controller) async fn finds_leftovers(&mut self, cluster: &SearchCluster) -> bool {
        if !self.looked.is_due() {
            return false;
        }
        self.looked = Looked(Some(Instant::now()));
        let found = timeout(ANSWER_TIMEOUT, self.look(cluster)).await.unwrap_or_default();
        if found {
            self.looked = Looked::default();
        }
        found
    }

    async fn look(&mut self, cluster: &SearchCluster) -> bool {
        let pods: Vec<Arc<Facts>> = self.pods.iter().cloned().collect();
        let known = snapshot::bare(cluster, &self.pods, String::new());
        let must_read = BTreeSet::new();
        let ages = Ages::of(&known, &must_read, false, pods.len());
        let endpoints = endpoints(&pods, &ages, cluster.spec.engine.port);
        let access = self.credentials.engine(&cluster.spec.engine).await;
        match self.engine.changes(access, endpoints, &self.metrics).await {
            Ok((allocation, records)) => {
                has_leftovers(&known.cluster.name, &known.ledger, &allocation, &records)
            }
            Err(error) => {
                tracing::debug!("the engine cannot be asked for what was left there: {error}");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_at_once_and_the_next_a_minute_later() {
        assert!(Looked::default().is_due());
        let before = |span| Looked(Instant::now().checked_sub(span));
        assert!(!before(INTERVAL - Duration::from_secs(5)).is_due());
        assert!(before(INTERVAL).is_due());
    }
}
