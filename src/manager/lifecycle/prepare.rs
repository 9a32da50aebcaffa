//! Requests that a config is verified and staged before a start.

use super::commit::{Act, Deciding, Pending};
use super::upgrade::Upgrading;
use super::{Effect, Intent, Lifecycle, Limits, Millis, Origin, Prepared, Request, Timer};
use stayput_api::{Code, ConfigChoice, Desired, Refusal, StartRequest};

impl Lifecycle {
    pub(super) fn prepared(
        &mut self,
        now: Millis,
        result: Result<Prepared, Refusal>,
        out: &mut Vec<Effect>,
    ) {
        self.timers.remove(&Timer::Prepare);
        match (self.deciding.take(), result) {
            (Some(Deciding::Verifying(pending)), Ok(prepared)) => {
                let (pending, mut intent) = pending.accepted(Desired::Running);
                intent.config = prepared.choice;
                intent.checksum.clone_from(&prepared.checksum);
                intent.unproven = true;
                self.commit(now, (pending, intent), Act::Spawn(prepared), out);
            }
            (Some(Deciding::Verifying(pending)), Err(refusal)) => {
                self.refuse(now, pending, refusal, out);
            }
            (Some(Deciding::Preparing(origin)), Ok(prepared)) => {
                self.deciding = Some(Deciding::Spawning {
                    origin,
                    pending: None,
                    prepared: prepared.clone(),
                    config_changed: false,
                });
                out.push(Effect::Spawn(prepared));
            }
            (Some(Deciding::Preparing(_)), Err(refusal)) => {
                self.prepare_failed(now, refusal, out);
            }
            (Some(Deciding::Resuming { .. }), Ok(prepared)) => self.resume_on(prepared, out),
            (Some(Deciding::Resuming { mounted }), Err(refusal)) => {
                self.resume_refused(now, mounted, refusal, out);
            }
            // TERM has cancelled the start that this config was prepared for.
            (
                other @ (Some(
                    Deciding::Committing { .. }
                    | Deciding::Upgrading(_)
                    | Deciding::Spawning { .. },
                )
                | None),
                Ok(_) | Err(_),
            ) => self.deciding = other,
        }
    }

    /// Prepares again, because the mounted config is no longer the verified one.
    pub(super) fn config_outdated(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.deciding = match self.deciding.take() {
            Some(Deciding::Spawning { pending: Some(pending), .. }) => {
                Some(Deciding::Verifying(pending))
            }
            Some(Deciding::Spawning { origin: Origin::Resume(before), .. }) => {
                self.resume_again(*before, out);
                if self.terminating {
                    self.end_without_engine();
                }
                return;
            }
            Some(Deciding::Spawning { origin, pending: None, .. }) => {
                Some(Deciding::Preparing(origin))
            }
            other => {
                self.deciding = other;
                return;
            }
        };
        if self.terminating {
            self.drop_start_in_flight(now, out);
            self.end_without_engine();
            return;
        }
        let is_late = |since: Millis| since + Limits::PREPARE_TIMEOUT <= now;
        if self.preparing_since.is_some_and(is_late) {
            let message = format!(
                "the config has changed for {} s each time that it was verified; end what writes it \
                 again and again, or copy it for the engine (--stage)",
                Limits::PREPARE_TIMEOUT / 1000
            );
            self.prepared(now, Err(Refusal::new(Code::StageFailed, message)), out);
            return;
        }
        match &self.deciding {
            Some(Deciding::Verifying(Pending { request: Request::Start(request), .. })) => {
                let request = request.clone();
                self.prepare_requested(now, &request, out);
            }
            Some(_) | None => self.prepare_own(now, out),
        }
    }

    /// Requests the config that a start request asks for.
    pub(super) fn prepare_requested(
        &mut self,
        now: Millis,
        request: &StartRequest,
        out: &mut Vec<Effect>,
    ) {
        self.prepare_exactly(now, request.config, request.checksum.clone(), out);
    }

    /// Requests this config, and no pinned one.
    pub(super) fn prepare_exactly(
        &mut self,
        now: Millis,
        choice: ConfigChoice,
        expected: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        self.prepare(now, Effect::Prepare { choice, expected, pinned: None }, out);
    }

    /// Requests the config of a start without a request.
    pub(super) fn prepare_own(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let Intent { config: choice, checksum, .. } = &self.intent;
        let pinned = checksum.clone().filter(|_| self.policy.pin_config);
        self.prepare(now, Effect::Prepare { choice: *choice, expected: None, pinned }, out);
    }

    /// Requests that a config is verified and staged, within a time limit.
    fn prepare(&mut self, now: Millis, effect: Effect, out: &mut Vec<Effect>) {
        self.preparing_since.get_or_insert(now);
        self.timers.insert(Timer::Prepare, now + Limits::PREPARE_TIMEOUT);
        out.push(effect);
    }

    /// Gives up a preparation: a hung mount or staging directory must not hold requests for ever. A
    /// later answer is ignored.
    pub(super) fn prepare_timed_out(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let message = format!(
            "the config was not verified and staged within {} s: a volume behind --config, --stage or \
             --tmp-dir does not answer",
            Limits::PREPARE_TIMEOUT / 1000
        );
        self.prepared(now, Err(Refusal::new(Code::StageFailed, message)), out);
    }

    /// Cancels, after TERM, a start that was not spawned yet. Its acceptance may be on disk already, so the
    /// refusal is written, as every other one: the next container must decide it anew.
    pub(super) fn drop_start_in_flight(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match self.deciding.take() {
            Some(Deciding::Preparing(_) | Deciding::Resuming { .. }) => {}
            Some(
                Deciding::Verifying(pending)
                | Deciding::Committing { pending, act: Act::Spawn(_), .. },
            ) => {
                let refusal = Refusal::new(
                    Code::Terminating,
                    "the manager received TERM before the engine was spawned",
                );
                self.refuse(now, pending, refusal, out);
            }
            Some(Deciding::Upgrading(Upgrading::Checking)) => self.drop_check(out),
            other @ (Some(
                Deciding::Committing { .. } | Deciding::Upgrading(_) | Deciding::Spawning { .. },
            )
            | None) => {
                self.deciding = other;
            }
        }
    }
}
