//! Delays the phase of a stop on pods. Most nodes are drained and stopped within a few seconds: then that
//! phase costs no write of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use stayput_restart::{Action, Phase, annotation};

/// Time after which the phase of a stop is written.
const SHOWN_AFTER: Duration = Duration::from_secs(5);

/// Time at which a plan first had the patch with the phase of a stop, by uid of the pod.
#[derive(Debug, Default)]
pub(super) struct NewPhases(BTreeMap<String, Instant>);

impl NewPhases {
    /// The actions without the patches that only show a stop which has just begun. The next plans have these
    /// patches again.
    pub(super) fn hold_back<'a>(
        &mut self,
        mut actions: Vec<&'a Action>,
        now: Instant,
    ) -> Vec<&'a Action> {
        let known = std::mem::take(&mut self.0);
        actions.retain(|action| {
            let Some(uid) = shows_a_stop(action) else { return true };
            let since = known.get(uid).copied().unwrap_or(now);
            self.0.insert(uid.to_owned(), since);
            now.duration_since(since) >= SHOWN_AFTER
        });
        actions
    }
}

/// Uid of the pod, for a patch that changes nothing but our own phase, to that of a stop.
fn shows_a_stop(action: &Action) -> Option<&str> {
    let Action::PatchPod { uid, changes } = action else { return None };
    let (phase, shown) = (changes.get(annotation::PHASE)?, changes.get(annotation::SHOWN)?);
    let is_stop =
        matches!(Phase::parse(phase.wanted.as_deref()?), Ok(Phase::Stop | Phase::StopCoordinated));
    // A phase that a person has written is replaced at once.
    let before = shown.seen.as_deref().and_then(|shown| shown.split_once(' '));
    let is_ours = phase.seen.as_deref() == before.map(|(_, phase)| phase);
    (is_stop && is_ours && changes.len() == 2).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayput_restart::Change;

    fn patch(changes: &[(&str, Option<&str>, Option<&str>)]) -> Action {
        let change = |seen: Option<&str>, wanted: Option<&str>| Change {
            seen: seen.map(str::to_owned),
            wanted: wanted.map(str::to_owned),
        };
        let changes = changes.iter();
        let changes =
            changes.map(|(key, seen, wanted)| ((*key).to_owned(), change(*seen, *wanted)));
        Action::PatchPod { uid: "a".into(), changes: changes.collect() }
    }

    #[test] // proves RESTART-144
    fn a_stop_is_shown_once_it_lasts() {
        let stop = patch(&[
            (annotation::PHASE, Some("schedule-rolling"), Some("stop")),
            (annotation::SHOWN, Some("r1 schedule-rolling"), Some("r1 stop")),
        ]);
        let (mut phases, began) = (NewPhases::default(), Instant::now());
        assert!(phases.hold_back(vec![&stop], began).is_empty());
        let after = |milliseconds| began + Duration::from_millis(milliseconds);
        assert!(phases.hold_back(vec![&stop], after(4_999)).is_empty());
        assert_eq!(phases.hold_back(vec![&stop], after(5_000)), [&stop]);
        assert!(phases.hold_back(vec![], began).is_empty());
        assert!(phases.hold_back(vec![&stop], after(5_000)).is_empty(), "another stop");
    }

    #[test] // proves RESTART-144
    fn nothing_else_is_held_back() {
        let now = Instant::now();
        let passes = |action: &Action| NewPhases::default().hold_back(vec![action], now).len() == 1;
        let start = patch(&[
            (annotation::PHASE, None, Some("start")),
            (annotation::SHOWN, None, Some("r1 start")),
        ]);
        let with_a_nudge = patch(&[
            (annotation::NUDGE, None, Some("new")),
            (annotation::PHASE, None, Some("stop")),
            (annotation::SHOWN, None, Some("r1 stop")),
        ]);
        let of_a_person = patch(&[
            (annotation::PHASE, Some("schedule"), Some("stop")),
            (annotation::SHOWN, None, Some("r1 stop")),
        ]);
        for action in [start, with_a_nudge, of_a_person, Action::AddFinalizer] {
            assert!(passes(&action), "{action:?}");
        }
    }
}
