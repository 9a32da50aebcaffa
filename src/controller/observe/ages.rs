//! Age at which cached facts about a pod are read again.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use stayput_restart::Snapshot;

/// Number of pods up to which everything is read at every observation while anything is under way.
const SMALL_CLUSTER: usize = 16;
/// Maximum age in a larger cluster, of facts about pods that are not under way.
const MAX_AGE_ACTIVE: Duration = Duration::from_secs(10);
/// Maximum age while nothing is under way.
const MAX_AGE_AT_REST: Duration = Duration::from_secs(60);

/// Maximum age of the facts about each pod.
pub(super) struct Ages<'a> {
    /// Uids of pods whose facts are read at every observation.
    always_read: BTreeSet<&'a str>,
    max_age: Duration,
}

impl<'a> Ages<'a> {
    /// `is_active`: anything is under way or asked for; `pods`: how many there are.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        must_read: &'a BTreeSet<String>,
        is_active: bool,
        pods: usize,
    ) -> Self {
        let must_read = must_read.iter().map(String::as_str);
        let always_read = snapshot.ledger.busy_pods().chain(must_read).collect();
        let max_age = match (is_active, pods) {
            (true, ..=SMALL_CLUSTER) => Duration::ZERO,
            (true, _) => MAX_AGE_ACTIVE,
            (false, _) => MAX_AGE_AT_REST,
        };
        Self { always_read, max_age }
    }

    /// True if the facts about this pod, read at `read`, must be read again.
    pub(super) fn is_over(&self, uid: &str, read: Option<Instant>) -> bool {
        match read {
            None => true,
            Some(_) if self.always_read.contains(uid) => true,
            Some(read) => read.elapsed() >= self.max_age,
        }
    }

    /// True if this pod is under way, or about to be.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.always_read.contains(uid)
    }
}
