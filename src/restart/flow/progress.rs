//! How far a long restart has come, told now and then.

use crate::estimate::Estimate;
use crate::planner::Planner;
use crate::{Ledger, Reason, Step};

/// Of fewer nodes each is told anyway, and that is enough.
const MANY: usize = 10;

impl Planner<'_> {
    /// Tells every tenth of the nodes that is done, in the write of the ledger that makes it so: it
    /// is told once, whoever looks how often. The end has an event of its own.
    pub(super) fn tell_progress(&mut self) {
        let before = done(&self.snapshot.ledger);
        let after = done(&self.ledger);
        let (Some((id, before, _)), Some((same, done, nodes))) = (before, after) else { return };
        let tenth = |done: usize| done * MANY / nodes;
        if id != same || nodes < MANY || done == nodes || tenth(done) <= tenth(before) {
            return;
        }
        let estimate = self.ledger.restart.as_ref();
        let estimate = estimate.and_then(|restart| Estimate::of(restart, self.snapshot.now));
        let left = estimate.map(|estimate| format!(", {} by their pace", estimate.left()));
        let message =
            format!("Restart {id}: {done} of {nodes} nodes done{}", left.unwrap_or_default());
        self.tell(None, Reason::RestartProgress, message);
    }
}

/// The restart under way by its id, how many of its nodes are done, and how many it has.
fn done(ledger: &Ledger) -> Option<(&str, usize, usize)> {
    let restart = ledger.restart.as_ref()?;
    let done = restart.members.iter().filter(|member| member.step == Step::Finished).count();
    Some((&restart.request.id, done, restart.members.len()))
}
