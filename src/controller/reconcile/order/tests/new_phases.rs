use crate::reconcile::order::*;
use stayput_restart::Change;

fn patch(changes: &[(&str, Option<&str>, Option<&str>)]) -> Action {
    let change = |seen: Option<&str>, wanted: Option<&str>| Change {
        seen: seen.map(str::to_owned),
        wanted: wanted.map(str::to_owned),
    };
    let changes = changes.iter();
    let changes = changes.map(|(key, seen, wanted)| ((*key).to_owned(), change(*seen, *wanted)));
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
