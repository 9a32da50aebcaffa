//! Calls to many managers at once: one that hangs does not delay the answers of the others.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time;

use super::{ClientError, Unanswered};
use crate::https::NoAnswer;

/// How many calls run at the same time.
pub const MAX_CONCURRENT: usize = 16;

/// Makes all calls, in their order and at most [`MAX_CONCURRENT`] at a time, and returns the result
/// of each under its key. A call that takes longer than `deadline` from its own beginning is
/// dropped and counts as [`ClientError::Unanswered`]. So in total it takes at most `deadline` for
/// each [`MAX_CONCURRENT`] calls that hang.
///
/// Nothing is spawned: dropping the future drops every call. Of two calls with one key the result of
/// the one that ends last is returned.
pub async fn ask_all<K: Ord, T, F>(
    calls: Vec<(K, F)>,
    deadline: Duration,
) -> BTreeMap<K, Result<T, ClientError>>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut waiting = calls.into_iter();
    let mut answers = BTreeMap::new();
    // No stream combinators: their closures would make the future of a call that borrows its client
    // unusable in another thread.
    let mut under_way = FuturesUnordered::new();
    loop {
        let free = MAX_CONCURRENT - under_way.len();
        under_way.extend(waiting.by_ref().take(free).map(|(key, call)| ask(key, call, deadline)));
        let Some((key, answer)) = under_way.next().await else { return answers };
        answers.insert(key, answer);
    }
}

async fn ask<K, T>(
    key: K,
    call: impl Future<Output = Result<T, ClientError>>,
    deadline: Duration,
) -> (K, Result<T, ClientError>) {
    let answer = time::timeout(deadline, call).await.unwrap_or_else(|_| {
        Err(Unanswered { manager: None, source: NoAnswer::Timeout(deadline) }.into())
    });
    (key, answer)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use super::super::ProtocolError;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_width_run_at_once_and_each_keeps_its_own_result() {
        let (now, most) = (Cell::new(0), Cell::new(0));
        let call = async |index: u32| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            time::sleep(Duration::from_millis(u64::from(100 - index))).await;
            now.set(now.get() - 1);
            match index % 3 {
                0 => Err(ProtocolError::UnchangedStatus { manager: index.to_string() }.into()),
                _ => Ok(index),
            }
        };
        let calls = (0..100).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(1)).await;
        assert_eq!((answers.len(), most.get(), now.get()), (100, MAX_CONCURRENT, 0));
        for (index, answer) in answers {
            match answer {
                Ok(own) => assert!(own == index && index % 3 != 0),
                Err(ClientError::Protocol(ProtocolError::UnchangedStatus { manager })) => {
                    assert!(manager == index.to_string() && index % 3 == 0);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_delay_the_rest_by_one_deadline_a_width() {
        let began = time::Instant::now();
        let call = async |index: usize| {
            if index < 2 * MAX_CONCURRENT { pending().await } else { Ok(began.elapsed()) }
        };
        let calls = (0..3 * MAX_CONCURRENT).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        for (index, answer) in answers {
            match answer {
                Ok(after) => {
                    assert!(index >= 2 * MAX_CONCURRENT && after <= Duration::from_secs(10))
                }
                Err(ClientError::Unanswered(_)) => assert!(index < 2 * MAX_CONCURRENT),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_delays_nobody() {
        let began = time::Instant::now();
        let call = async |index: u32| {
            if index == 0 {
                return pending().await;
            }
            time::sleep(Duration::from_millis(10)).await;
            Ok(began.elapsed())
        };
        let calls = (0..=15).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(5)).await;
        assert!(matches!(answers[&0], Err(ClientError::Unanswered(_))));
        let latest = answers.values().filter_map(|answer| answer.as_ref().ok()).max();
        assert_eq!(latest, Some(&Duration::from_millis(10)));
    }
}
