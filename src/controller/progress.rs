//! Notices a reconcile that hangs.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// Time limit of a round of a reconcile. Every call has its own timeout; a round that takes longer than this
/// hangs.
const HANGS_AFTER: Duration = Duration::from_secs(600);

/// Begin of the last round of a reconcile.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    /// Records that a round begins.
    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn hangs_at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) + HANGS_AFTER
    }

    /// The result of a reconcile that begins now, unless a round of it hangs.
    pub(super) async fn unless_it_hangs<T>(self, reconcile: impl Future<Output = T>) -> Option<T> {
        self.note();
        let mut reconcile = pin!(reconcile);
        loop {
            let end = self.hangs_at();
            match timeout_at(end, &mut reconcile).await {
                Ok(done) => return Some(done),
                Err(_) if self.hangs_at() > end => {}
                Err(_) => {
                    tracing::error!(
                        "a reconcile hung for {HANGS_AFTER:?}: cancelled and started again"
                    );
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)] // proves RESTART-16
    async fn a_reconcile_that_never_ends_is_given_up_and_a_long_one_is_not() {
        let (progress, began) = (Progress::default(), Instant::now());
        assert_eq!(progress.clone().unless_it_hangs(pending::<()>()).await, None);
        assert_eq!(began.elapsed(), HANGS_AFTER);
        let rounds = async {
            for _ in 0..3 {
                progress.note();
                sleep(HANGS_AFTER * 2 / 3).await;
            }
            1
        };
        assert_eq!(progress.clone().unless_it_hangs(rounds).await, Some(1));
    }
}
