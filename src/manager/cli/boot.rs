//! What may end the manager before there is an engine.
//!
//! A mistake at the installation is said at once: the manager ends. Later, when the pod has run
//! before, a fault of the API is no reason to keep the engine down, and without a manager nobody
//! could start it: the fault is reported and tried again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::config_watch::{ConfigSettings, ConfigWatch};
use crate::errors::Errors;
use crate::http::{HttpSettings, Limits, Server};
use crate::process;
use crate::supervisor::Journal;
use crate::worker::Worker;

/// How long the first access to a volume may take.
const VOLUME_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a thread, which is possible now: the engine has none yet.
pub(super) fn worker(name: &'static str, errors: &Errors) -> Result<Worker, Vec<String>> {
    Worker::start(name, errors).map_err(|error| vec![error.to_string()])
}

/// The journal, and a thread that shares neither its time nor its open files; and whether this is
/// the first start.
pub(super) async fn open_journal(
    state_dir: Option<&Path>,
    errors: &Errors,
) -> Result<(Option<(Journal, Worker)>, bool), Vec<String>> {
    let Some(state_dir) = state_dir else { return Ok((None, true)) };
    let (journal, worker) = (Journal::new(state_dir), worker("journal", errors)?);
    if let Ok(Err(error)) = worker.run(process::own_descriptors).await {
        tracing::warn!(
            %error,
            "files of the state directory are open in all threads: if the disk hangs, a start may \
             hang, too"
        );
    }
    let is_first_start = is_first_start(&journal, &worker).await?;
    Ok((Some((journal, worker)), is_first_start))
}

/// The config, followed; it is read and staged on one thread, and kept on another.
pub(super) async fn watch_config(
    settings: ConfigSettings,
    staging: Worker,
    errors: &Errors,
) -> Result<Arc<ConfigWatch>, Vec<String>> {
    let dirs = settings.dirs.clone();
    let keeper = worker("kept configs", errors)?;
    // It keeps configs only beside a journal, whose thread has warned if this is not possible.
    let _ = keeper.run(process::own_descriptors).await;
    let watch = ConfigWatch::start(settings, staging, keeper, errors.clone());
    match timeout(VOLUME_TIMEOUT, watch).await {
        Ok(watch) => Ok(Arc::new(watch)),
        Err(_) => {
            let dirs: Vec<_> = dirs.iter().map(|dir| dir.path.display().to_string()).collect();
            Err(vec![format!(
                "--config {} did not answer within {VOLUME_TIMEOUT:?}: repair the volume",
                dirs.join(", ")
            )])
        }
    }
}

/// Whether no manager of this pod has run before: there is no journal.
///
/// # Errors
/// The state directory cannot be used.
async fn is_first_start(journal: &Journal, worker: &Worker) -> Result<bool, Vec<String>> {
    let checked = journal.clone();
    match timeout(VOLUME_TIMEOUT, worker.run(move || checked.check())).await {
        Ok(Ok(Ok(has_journal))) => Ok(!has_journal),
        Ok(Ok(Err(problem))) => Err(vec![problem.to_string()]),
        // The supervisor takes over: a disk that hangs must not keep the engine down.
        Ok(Err(_)) | Err(_) => Ok(false),
    }
}

/// The API, as far as it can be served.
///
/// # Errors
/// At the first start, all that cannot be served.
pub(super) async fn api(
    settings: HttpSettings,
    is_first_start: bool,
    errors: &Errors,
) -> Result<Server, Vec<String>> {
    let server = Server::bind(settings, Limits::default(), errors).await?;
    let faults = server.faults();
    if is_first_start && !faults.is_empty() { Err(faults) } else { Ok(server) }
}
