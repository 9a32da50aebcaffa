//! What may end the manager before there is an engine.
//!
//! A mistake at the installation is said at once: the manager ends. Later, when the pod has run
//! before, a fault of the API is no reason to keep the engine down, and without a manager nobody
//! could start it: the fault is reported and tried again.

use tokio::time::timeout;

use super::run::VOLUME_TIMEOUT;
use crate::errors::Errors;
use crate::http::{HttpSettings, Limits, Server};
use crate::supervisor::Journal;
use crate::worker::Worker;

/// Whether no manager of this pod has run before: there is no journal.
///
/// # Errors
/// The state directory cannot be used.
pub(super) async fn is_first_start(
    journal: &Journal,
    worker: &Worker,
) -> Result<bool, Vec<String>> {
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
