//! What a start needs before its spawn: the config verified and staged, the temporary directory
//! emptied. On the blocking pool: a slow disk must not keep the supervisor from answering.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::actor::Supervisor;
use crate::config_watch::{self, ConfigWatch};
use crate::lifecycle::{self, Event};
use crate::process::{TempDir, TempDirError};
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

/// Everything for a spawn, or why there is none.
pub(super) type Preparing = Pin<Box<dyn Future<Output = Result<Ready, Refusal>> + Send + 'static>>;

/// What a start was prepared with.
pub(super) struct Ready {
    /// For the lifecycle.
    pub(super) known: lifecycle::Prepared,
    /// To be compared with the mounts later; none without `--config`.
    pub(super) config: Option<config_watch::Prepared>,
}

impl Supervisor {
    /// Begins to prepare a start; answers at once where there is nothing to do.
    pub(super) fn prepare(
        &mut self,
        choice: ConfigChoice,
        expected: Option<String>,
    ) -> Option<Event> {
        let (config, temp_dir) = (self.engine.config.clone(), self.engine.temp_dir.clone());
        if config.is_none() && temp_dir.is_none() {
            return Some(Event::Prepared(without_config(choice, expected)));
        }
        self.preparing = Some(Box::pin(async move {
            let ready = match config {
                Some(config) => verified(&config, choice, expected).await?,
                None => Ready { known: without_config(choice, expected)?, config: None },
            };
            if let Some(temp_dir) = temp_dir {
                emptied(temp_dir).await?;
            }
            Ok(ready)
        }));
        None
    }
}

async fn verified(
    config: &ConfigWatch,
    choice: ConfigChoice,
    expected: Option<String>,
) -> Result<Ready, Refusal> {
    let expected = expected
        .map(|text| Checksum::parse(&text))
        .transpose()
        .map_err(|error| Refusal::new(Code::ChecksumMismatch, error.to_string()))?;
    let prepared = config.prepare(choice, expected.as_ref()).await?;
    let known = lifecycle::Prepared {
        checksum: prepared.checksum.as_ref().map(ToString::to_string),
        choice: prepared.choice,
    };
    Ok(Ready { known, config: Some(prepared) })
}

async fn emptied(temp_dir: Arc<TempDir>) -> Result<(), Refusal> {
    match tokio::task::spawn_blocking(move || temp_dir.prepare()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error @ TempDirError::NotEmptied { .. })) => {
            // A directory with something old in it serves as well as /tmp does.
            tracing::warn!(%error, "the engine's temporary directory");
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

fn without_config(
    choice: ConfigChoice,
    expected: Option<String>,
) -> Result<lifecycle::Prepared, Refusal> {
    let refuse = |code, detail: &str| Err(Refusal::new(code, detail));
    match (choice, expected) {
        (ConfigChoice::LastGood, _) => refuse(
            Code::NoLastGood,
            "no config is kept: the manager runs without --config, --stage and --keep-last-good",
        ),
        (ConfigChoice::Mounted, Some(_)) => refuse(
            Code::ConfigUnknown,
            "the manager runs without --config, so it cannot tell what is mounted",
        ),
        (ConfigChoice::Mounted, None) => Ok(lifecycle::Prepared { checksum: None, choice }),
    }
}
