//! Reasons why a watch may show nothing: an apiserver that does not answer, or no reconciler.

use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use kube::Client;
use kube::runtime::watcher::Event;
use stayput_restart::Time;
use tokio::time::sleep;

use crate::apiserver::ApiError;
use crate::leader::Reconciler;
use crate::progress::Line;
use crate::view::Tone;
use crate::watch::objects::Heard;

/// Interval at which the Lease is read.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Warnings given so far, so that each is given once.
#[derive(Debug, Default)]
pub(crate) struct Availability {
    /// True if a watch could not begin, or a read of the Lease failed, and there was no answer since.
    is_broken: bool,
    is_absent: bool,
}

impl Availability {
    /// The event, if there is one, and a line to print.
    pub(crate) fn hear<T>(
        &mut self,
        heard: Heard<T>,
        now: Time,
    ) -> (Option<Event<T>>, Option<Line>) {
        match heard {
            Heard::Event(event) => (Some(event), self.answers(now)),
            Heard::Broken(None) => (None, None),
            Heard::Broken(Some(error)) => (None, self.breaks(&error, now)),
        }
    }

    fn breaks(&mut self, error: &ApiError, now: Time) -> Option<Line> {
        let was_broken = std::mem::replace(&mut self.is_broken, true);
        let trouble = || Line::trouble(now, Tone::Bad, format!("{error}; trying again"));
        (!was_broken).then(trouble)
    }

    fn answers(&mut self, now: Time) -> Option<Line> {
        let again = || "the apiserver answers again".to_owned();
        let was_broken = std::mem::take(&mut self.is_broken);
        was_broken.then(|| Line::trouble(now, Tone::Good, again()))
    }

    /// Lines to print after a read of the Lease. It also shows if the apiserver answers: a watch that
    /// hangs is broken only after its timeout, and one that has begun again has no event before
    /// something changes.
    pub(crate) fn look(&mut self, seen: Result<Reconciler, ApiError>, now: Time) -> Vec<Line> {
        let reconciler = match seen {
            Ok(reconciler) => reconciler,
            Err(error) => return self.breaks(&error, now).into_iter().collect(),
        };
        let mut lines: Vec<Line> = self.answers(now).into_iter().collect();
        let warning = reconciler.warning();
        let was_absent = std::mem::replace(&mut self.is_absent, warning.is_some());
        match warning {
            Some(warning) if !was_absent => {
                lines.push(Line::trouble(now, Tone::Bad, format!("reconciler: {warning}")));
            }
            None if was_absent => {
                let works = "reconciler: one works again".to_owned();
                lines.push(Line::trouble(now, Tone::Good, works));
            }
            Some(_) | None => {}
        }
        lines
    }
}

/// Reads the Lease, at once and then again and again.
pub(crate) fn looks(client: &Client) -> impl Stream<Item = Result<Reconciler, ApiError>> + '_ {
    unfold(Duration::ZERO, move |pause| async move {
        sleep(pause).await;
        Some((Reconciler::look(client).await, LOOK_INTERVAL))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::Operation;
    use crate::tests::now;

    fn messages(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.message).collect()
    }

    fn silent() -> ApiError {
        ApiError::Timeout { operation: Operation::watch_pods("search") }
    }

    #[test] // proves UPDATE-43
    fn that_the_apiserver_does_not_answer_is_said_once_and_so_is_that_it_does() {
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
}
