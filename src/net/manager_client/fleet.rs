//! Many managers asked at once, none of which can hide another.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time;

use super::ClientError;

/// How many are asked at the same time.
pub const WIDTH: usize = 16;

/// Makes all calls, [`WIDTH`] at a time and begun in their order, and keeps what came of each under
/// its key. A call that takes longer than `deadline` from its own beginning is dropped and counts as
/// [`ClientError::Unanswered`], so all of them take at most `deadline` for each [`WIDTH`] that hang.
///
/// Nothing is spawned: dropping the future drops every call. Of two calls with one key the one that
/// ends last is kept.
pub async fn ask_all<K: Ord, T, F>(
    calls: Vec<(K, F)>,
    deadline: Duration,
) -> BTreeMap<K, Result<T, ClientError>>
where
    F: Future<Output = Result<T, ClientError>>,
{
    let mut waiting = calls.into_iter();
    let mut answers = BTreeMap::new();
    // No stream combinators: with their closures inside, the future of a call that borrows its
    // client could not be sent to another thread.
    let mut under_way = FuturesUnordered::new();
    loop {
        let free = WIDTH - under_way.len();
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
        Err(ClientError::Unanswered(format!(
            "no answer within {}; whether the manager acted on the request is not known: look at \
             its status",
            humantime::format_duration(deadline)
        )))
    });
    (key, answer)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

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
                0 => Err(ClientError::NotReachable(index.to_string())),
                _ => Ok(index),
            }
        };
        let calls = (0..100).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(1)).await;
        assert_eq!((answers.len(), most.get(), now.get()), (100, WIDTH, 0));
        for (index, answer) in answers {
            match answer {
                Ok(own) => assert!(own == index && index % 3 != 0),
                Err(error) => assert!(error.to_string() == index.to_string() && index % 3 == 0),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_delay_the_rest_by_one_deadline_a_width() {
        let began = time::Instant::now();
        let call = async |index: usize| {
            if index < 2 * WIDTH { pending().await } else { Ok(began.elapsed()) }
        };
        let calls = (0..3 * WIDTH).map(|index| (index, call(index))).collect();
        let answers = ask_all(calls, Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        for (index, answer) in answers {
            match answer {
                Ok(after) => assert!(index >= 2 * WIDTH && after <= Duration::from_secs(10)),
                Err(ClientError::Unanswered(_)) => assert!(index < 2 * WIDTH),
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
