//! Cancel: no further stops; nodes already stopped are finished.

use crate::planner::Planner;
use crate::{Outcome, Reason, annotation};

impl Planner<'_> {
    /// Hears a cancel on the SearchCluster. Once heard, the annotation is taken away.
    pub(super) fn hear_cancel(&mut self) {
        let Some(id) = self.snapshot.cluster.annotations.get(annotation::CANCEL).cloned() else {
            return;
        };
        if self.ledger.queued.as_ref().is_some_and(|queued| queued.id == id)
            && let Some(queued) = self.ledger.to_mut().queued.take()
        {
            self.record_unbegun(&queued, Outcome::Aborted, "cancelled before it began".into());
            return;
        }
        let restart = self.ledger.restart.as_ref().filter(|restart| restart.request.id == id);
        let Some(restart) = restart else {
            // Over, cancelled already, or never known: nothing is left to do for it.
            return self.clear(annotation::CANCEL);
        };
        if restart.ending.is_some() {
            return self.clear(annotation::CANCEL);
        }
        if let Some(why) = restart.beyond_cancel() {
            let message = format!("Restart {id} cannot be cancelled any more: {why}");
            self.tell(None, Reason::InputIgnored, message);
            return self.clear(annotation::CANCEL);
        }
        self.end_with(Outcome::Aborted, "cancelled");
    }
}
