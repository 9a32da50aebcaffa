//! A run whose end no manager saw: the container was killed as a whole, with the engine and the
//! manager in it. A kubelet from 1.28 on does so on cgroup v2 when memory runs out.

use std::time::UNIX_EPOCH;

use super::{Held, HeldCode, Lifecycle, Limits, Millis};
use stayput_api::{self as api, Desired, Exit, ExitReason};

impl Lifecycle {
    /// Takes over a run from the journal, before anything else is decided. True if the intent
    /// changed by that.
    pub(super) fn ended_with_manager(&mut self, now: Millis, run: &api::Run) -> bool {
        self.last_exit = Some(Exit {
            run: run.id.clone(),
            code: None,
            signal: None,
            reason: ExitReason::EndedWithManager,
            took_ms: 0,
            ran_ms: now.saturating_sub(started_at(run).unwrap_or(now)),
            at: super::timestamp(now),
            stragglers: Vec::new(),
            unnamed: 0,
            strangers: Vec::new(),
        });
        let intent = &mut self.intent;
        // One that was ready before is started again, as after every other end of the container.
        if !intent.unproven || intent.held.is_some() || intent.desired == Desired::Stopped {
            return false;
        }
        intent.unseen_ends = intent.unseen_ends.saturating_add(1);
        if intent.unseen_ends >= Limits::MAX_UNSEEN_ENDS {
            let message = format!(
                "the engine ended {} times together with its manager before it was ready: the \
                 container was killed, often because its memory ran out (kubectl describe pod: \
                 OOMKilled); give it more memory or another config, and start it again",
                intent.unseen_ends
            );
            intent.held = Some(Held { code: HeldCode::EndedWithManager, message });
        }
        true
    }
}

fn started_at(run: &api::Run) -> Option<Millis> {
    let at = humantime::parse_rfc3339(&run.started_at).ok()?;
    Millis::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
