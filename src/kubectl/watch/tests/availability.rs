//! Each trouble is said once, and so is its end.

use kube::runtime::watcher::Event;

use crate::apiserver::ApiError;
use crate::leader::Reconciler;
use crate::progress::Line;
use crate::tests::{now, watched_pods};
use crate::watch::{Availability, Heard};

fn messages(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
    lines.into_iter().map(|line| line.message).collect()
}

fn silent() -> ApiError {
    ApiError::Timeout { call: Box::new(watched_pods()) }
}

#[tokio::test] // proves UPDATE-43
async fn that_the_apiserver_does_not_answer_is_said_once_and_so_is_that_it_does() {
    let mut availability = Availability::default();
    let mut hear = |heard| messages(availability.hear::<()>(heard, now()).1);
    assert_eq!(hear(Heard::Broken(None)), [""; 0]);
    let told = hear(Heard::Broken(Some(silent())));
    assert!(told[0].contains("did not answer") && told[0].ends_with("; trying again"));
    assert_eq!(hear(Heard::Broken(Some(silent()))), [""; 0]);
    let again = ["the apiserver answers again"];
    assert_eq!(hear(Heard::Event(Event::Init)), again);
    assert_eq!(hear(Heard::Event(Event::Init)), [""; 0]);
    hear(Heard::Broken(Some(silent())));
    let mut look = |seen| messages(availability.look(seen, now()));
    assert_eq!(look(Err(silent())), [""; 0]);
    assert_eq!(look(Ok(Reconciler::Unknown)), again);
    // A watch that hangs says nothing.
    let told = look(Err(silent()));
    assert!(told[0].contains("did not answer") && told[0].ends_with("; trying again"));
    assert_eq!(look(Err(silent())), [""; 0]);
    assert_eq!(look(Ok(Reconciler::Unknown)), again);
}

#[test] // proves UPDATE-43
fn that_no_reconciler_works_is_said_once_and_so_is_that_one_does() {
    let mut availability = Availability::default();
    let mut look = |seen| messages(availability.look(Ok(seen), now()));
    assert_eq!(look(Reconciler::Works), [""; 0]);
    let told = look(Reconciler::Absent("why".to_owned()));
    assert!(told[0].starts_with("reconciler: why; until one works"), "{told:?}");
    assert_eq!(look(Reconciler::Absent("another".to_owned())), [""; 0]);
    assert_eq!(look(Reconciler::Works), ["reconciler: one works again"]);
}
