//! A stopped engine is started without an answer of the other engines: they may hang, or elect another
//! master, and nothing that they could say changes the start.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::engine::ViewError;
use super::managers::{Answer, Managers};
use crate::concurrency::MAX_POLLS;
use stayput_api::State;
use stayput_restart::{Ledger, Manager, awaited_starts, start_is_due};

/// Time to wait for the engine's answers when a start comes next.
const ENGINE_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Uids of the nodes under way whose engine was stopped in the manager's last answer. A start that could not
/// be sent then does not hide the engine for ever.
pub(super) fn stopped_before(ledger: &Ledger, managers: &Managers) -> BTreeSet<String> {
    let uids = ledger.under_way().map(|member| member.pod_uid.clone());
    uids.filter(|uid| managers.of(uid).is_ok_and(|is| is.state == State::Stopped)).collect()
}

/// Signals when to wait for the engine's answers no longer.
pub(super) struct StartSignals<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) stopped_before: BTreeSet<String>,
    /// Sends true if a start comes next, by the managers' first answers.
    pub(super) comes_next: oneshot::Sender<bool>,
    /// Sends when a start can be sent.
    pub(super) is_due: oneshot::Sender<()>,
    /// Ends when the engine has answered.
    pub(super) engine: oneshot::Receiver<()>,
}

impl StartSignals<'_> {
    /// Follows the managers whose stop is awaited until the engine has answered or a start can be sent; then
    /// `answers` are the newest.
    pub(super) async fn follow(self, answers: &mut [Answer]) {
        let comes_next = awaited_starts(self.ledger, manager_in(answers)).next().is_some();
        // Nobody listens any more if the engine was quicker.
        let _ = self.comes_next.send(comes_next);
        if !comes_next {
            return;
        }
        let until_due = until_due(self.ledger, &self.stopped_before, answers);
        tokio::select! {
            biased;
            () = until_due => {
                let _ = self.is_due.send(());
            }
            _ = self.engine => {}
        }
    }
}

/// Completes once a start can be sent that could not be sent before.
async fn until_due(ledger: &Ledger, before: &BTreeSet<String>, answers: &mut [Answer]) {
    loop {
        if is_due(ledger, before, answers) {
            return;
        }
        let (place, next) = change(ledger, answers).await;
        answers[place] = next;
    }
}

fn is_due(ledger: &Ledger, before: &BTreeSet<String>, answers: &[Answer]) -> bool {
    let manager = manager_in(answers);
    start_is_due(ledger, |uid| manager(uid).filter(|_| !before.contains(uid)))
}

/// The next answer of one of the managers whose stop is awaited, and its index. Of more than [`MAX_POLLS`],
/// those that come first in the ledger.
async fn change(ledger: &Ledger, answers: &[Answer]) -> (usize, Answer) {
    let places = answers.iter().enumerate().map(|(place, answer)| (answer.uid(), place));
    let places: BTreeMap<&str, usize> = places.collect();
    let awaited = awaited_starts(ledger, manager_in(answers)).take(MAX_POLLS);
    let awaited = awaited.filter_map(|uid| places.get(uid).copied());
    let next = async |place: usize| (place, answers[place].next().await);
    let mut changes: FuturesUnordered<_> = awaited.map(next).collect();
    match changes.next().await {
        Some(change) => change,
        None => pending().await,
    }
}

fn manager_in(answers: &[Answer]) -> impl Fn(&str) -> Option<Manager> {
    let answers: BTreeMap<&str, &Answer> =
        answers.iter().map(|answer| (answer.uid(), answer)).collect();
    move |uid| answers.get(uid)?.manager()
}

/// Reads the engine; for a short time only once the managers have shown that a start comes next, and no
/// longer once it can be sent.
pub(super) async fn read<T>(
    engine: impl Future<Output = Result<T, ViewError>>,
    comes_next: oneshot::Receiver<bool>,
    is_due: oneshot::Receiver<()>,
) -> Result<T, ViewError> {
    let waited_enough = async {
        match comes_next.await {
            Ok(true) => sleep(ENGINE_ANSWER_WAIT).await,
            Ok(false) | Err(_) => pending().await,
        }
    };
    tokio::select! {
        biased;
        engine = engine => engine,
        Ok(()) = is_due => Err(ViewError::StartFirst),
        () = waited_enough => Err(ViewError::StartFirst),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::time::Instant;

    /// How long an engine that does not answer is waited for.
    async fn waited(comes_next: bool, is_due_after: Option<u64>) -> Option<Duration> {
        let (tell_next, next) = oneshot::channel();
        let (tell_due, due) = oneshot::channel();
        tell_next.send(comes_next).unwrap();
        let began = Instant::now();
        let signal = async move {
            match is_due_after {
                Some(after) => sleep(Duration::from_millis(after)).await,
                None => pending().await,
            }
            tell_due.send(()).unwrap();
            pending::<()>().await;
        };
        tokio::select! {
            read = read(pending::<Result<(), _>>(), next, due) => {
                assert!(matches!(read, Err(ViewError::StartFirst)));
                Some(began.elapsed())
            }
            () = signal => None,
            () = sleep(Duration::from_secs(60)) => None,
        }
    }

    #[tokio::test(start_paused = true)] // proves RESTART-38
    async fn the_engine_is_waited_for_only_until_a_start_can_be_sent() {
        assert_eq!(waited(false, None).await, None);
        assert_eq!(waited(true, None).await, Some(Duration::from_secs(1)));
        assert_eq!(waited(true, Some(300)).await, Some(Duration::from_millis(300)));
        assert_eq!(waited(true, Some(0)).await, Some(Duration::ZERO));
    }
}
