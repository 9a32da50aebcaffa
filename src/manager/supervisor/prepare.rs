//! Preparation of a start before its spawn: what an earlier run has left is ended, the config verified and
//! staged, the temporary directory emptied. On threads of their own: a slow disk must not keep the
//! supervisor from answering.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::config_watch::{self, ConfigWatch};
use crate::errors::{ErrorCode, Errors};
use crate::lifecycle;
use crate::process::{LeftBehind, TempDir, TempDirError, end_leftovers};
use crate::worker::Worker;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

/// How long emptying the temporary directory may take: it may have large files. Shorter than the
/// limit for all of a start, so that its cause can be said.
const EMPTYING_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a start waits for work that an earlier one has begun.
const HANGING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the processes of an earlier run may take to end after KILL.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look whether they have ended.
const LEFTOVERS_INTERVAL: Duration = Duration::from_millis(20);

/// The work of [`prepare`]: what the spawn needs, or why there is no spawn.
pub(super) type Preparing = Pin<Box<dyn Future<Output = Result<Ready, Refusal>> + Send + 'static>>;

/// Result of the preparation of a start.
pub(super) struct Ready {
    pub(super) known: lifecycle::Prepared,
    /// The prepared config, to be compared with the mounts later; `None` without `--config`.
    pub(super) config: Option<config_watch::Prepared>,
}

/// Prepares a start: verifies and stages the config, empties the temporary directory.
pub(super) async fn prepare(
    config: Option<Arc<ConfigWatch>>,
    temp_dir: Option<(Arc<TempDir>, Worker)>,
    choice: ConfigChoice,
    expected: Option<String>,
    pinned: Option<String>,
    errors: Errors,
) -> Result<Ready, Refusal> {
    let ready = match config {
        Some(config) => verified(&config, choice, expected, pinned).await?,
        None => Ready { known: without_config(choice, expected)?, config: None },
    };
    if let Some((temp_dir, worker)) = temp_dir {
        emptied(temp_dir, &worker, &errors).await?;
    }
    Ok(ready)
}

/// Ends what is left of a run, and waits until it is gone.
pub(super) async fn nothing_left(run: String, worker: Worker) -> Result<(), Refusal> {
    let deadline = Instant::now() + LEFTOVERS_TIMEOUT;
    let mut logged = false;
    loop {
        let of = run.clone();
        let ended = worker.run(move || end_leftovers(&of)).await;
        let Ok(Err(left)) = ended else { return Ok(()) };
        let may_end = matches!(left, LeftBehind::Killed(_));
        if may_end && !std::mem::replace(&mut logged, true) {
            tracing::warn!(%run, "{left}; they are killed before the engine is started");
        }
        if !may_end || Instant::now() >= deadline {
            return Err(Refusal::new(Code::SpawnFailed, format!("no engine is started: {left}")));
        }
        sleep(LEFTOVERS_INTERVAL).await;
    }
}

async fn verified(
    config: &ConfigWatch,
    choice: ConfigChoice,
    expected: Option<String>,
    pinned: Option<String>,
) -> Result<Ready, Refusal> {
    let expected = expected
        .map(|text| Checksum::parse(&text))
        .transpose()
        .map_err(|error| Refusal::new(Code::ChecksumMismatch, error.to_string()))?;
    // What is not a checksum in the journal is no generation that could be kept.
    let pinned = pinned.and_then(|text| Checksum::parse(&text).ok());
    let prepared = match pinned {
        Some(pinned) => config.prepare_pinned(&pinned, choice).await?,
        None => config.prepare(choice, expected.as_ref()).await?,
    };
    let known = lifecycle::Prepared {
        checksum: prepared.checksum.as_ref().map(ToString::to_string),
        choice: prepared.choice,
    };
    Ok(Ready { known, config: Some(prepared) })
}

async fn emptied(temp_dir: Arc<TempDir>, worker: &Worker, errors: &Errors) -> Result<(), Refusal> {
    let path = temp_dir.path().to_owned();
    let limit = if temp_dir.is_busy() { HANGING_TIMEOUT } else { EMPTYING_TIMEOUT };
    let emptied = match timeout(limit, worker.run(move || temp_dir.prepare())).await {
        Ok(emptied) => emptied,
        Err(_) => {
            return Err(Refusal::new(
                Code::TempDirFailed,
                format!(
                    "the engine's temporary directory {} was not emptied within {} s: its volume is \
                     slow or does not answer; repair the volume behind --tmp-dir, or try again later",
                    path.display(),
                    limit.as_secs()
                ),
            ));
        }
    };
    match emptied {
        Ok(Ok(())) => {
            errors.resolve(ErrorCode::TempDir);
            Ok(())
        }
        Ok(Err(error @ TempDirError::NotEmptied { .. })) => {
            // A directory with old files in it is still as good as /tmp.
            errors.report(ErrorCode::TempDir, error.to_string());
            Ok(())
        }
        Ok(Err(error @ TempDirError::Unusable { .. })) => {
            Err(Refusal::new(Code::TempDirFailed, error.to_string()))
        }
        Err(error) => Err(Refusal::new(
            Code::TempDirFailed,
            format!("the engine's temporary directory was not emptied: {error}"),
        )),
    }
}

/// The result for a manager without `--config`.
pub(super) fn without_config(
    choice: ConfigChoice,
    expected: Option<String>,
) -> Result<lifecycle::Prepared, Refusal> {
    let refuse = |code, message: &str| Err(Refusal::new(code, message));
    match (choice, expected) {
        (ConfigChoice::LastGood, _) => refuse(
            Code::NoLastGood,
            "no config is kept: the manager runs without --config, --stage and --keep-last-good",
        ),
        (ConfigChoice::Mounted, Some(_)) => refuse(
            Code::ConfigUnknown,
            "the manager runs without --config, so it does not know the mounted config",
        ),
        (ConfigChoice::Mounted, None) => Ok(lifecycle::Prepared { checksum: None, choice }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test] // proves STOP-16
    async fn a_temporary_directory_that_cannot_be_emptied_is_an_error_until_it_is() {
        let parent = tempfile::tempdir().unwrap();
        let temp_dir = Arc::new(TempDir::new(parent.path()));
        let errors = Errors::default();
        let worker = Worker::start("test", &errors).unwrap();
        emptied(Arc::clone(&temp_dir), &worker, &errors).await.unwrap();
        let deep = temp_dir.path().join("d/".repeat(300));
        std::fs::create_dir_all(deep).unwrap();
        emptied(Arc::clone(&temp_dir), &worker, &errors).await.unwrap();
        assert_eq!(errors.list()[0].code, "temp_dir");
        assert!(errors.list()[0].message.contains("by hand"), "{errors:?}");
        std::fs::remove_dir_all(temp_dir.path().join("d")).unwrap();
        emptied(temp_dir, &worker, &errors).await.unwrap();
        assert_eq!(errors.list(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_temporary_directory_that_hangs_is_named_before_the_time_of_the_start_is_over() {
        let parent = tempfile::tempdir().unwrap();
        let temp_dir = Arc::new(TempDir::new(parent.path()));
        let worker = Worker::start("test", &Errors::default()).unwrap();
        let (go, gate) = channel::<()>();
        let hanging = worker.run(move || gate.recv());
        let began = Instant::now();
        let refusal = emptied(temp_dir.clone(), &worker, &Errors::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::TempDirFailed);
        let path = temp_dir.path().to_str().unwrap();
        assert!(refusal.message.contains(path), "{refusal:?}");
        let limit = Duration::from_millis(lifecycle::Limits::PREPARE_TIMEOUT);
        assert!(began.elapsed() < limit, "{:?}", began.elapsed());
        drop(go);
        let _ = hanging.await;
        // The worker needs real time.
        tokio::time::resume();
        emptied(temp_dir, &worker, &Errors::default()).await.unwrap();
    }
}
