//! SearchClusters whose task has ended by a fault of ours: each is started again after a pause, so that one
//! that fails each time does no other harm.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clusters::Key;

/// Pause before such a task is started again.
const PAUSE: Duration = Duration::from_secs(10);

/// Time at which the task of each SearchCluster may be started again.
#[derive(Debug, Default)]
pub(super) struct Failed(BTreeMap<Key, Instant>);

impl Failed {
    pub(super) fn note(&mut self, key: Key) {
        self.0.insert(key, Instant::now() + PAUSE);
    }

    /// True if the task of this SearchCluster may be started now.
    pub(super) fn may_start(&mut self, key: &Key) -> bool {
        let now = Instant::now();
        self.0.retain(|_, at| *at > now);
        !self.0.contains_key(key)
    }

    /// Completes once one of the tasks may be started again.
    pub(super) fn pause_is_over(&self) -> impl Future<Output = ()> + use<> {
        let first = self.0.values().min().copied();
        async move {
            match first {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)] // proves RESTART-37
    async fn a_task_that_fails_is_started_again_after_a_pause() {
        let [one, other] = ["one", "other"].map(|name| ("search".to_owned(), name.to_owned()));
        let mut failed = Failed::default();
        assert!(failed.may_start(&one));
        assert!(timeout(PAUSE * 2, failed.pause_is_over()).await.is_err());
        failed.note(one.clone());
        assert!(!failed.may_start(&one) && failed.may_start(&other));
        assert!(timeout(PAUSE * 2, failed.pause_is_over()).await.is_ok());
        assert!(failed.may_start(&one));
    }
}
