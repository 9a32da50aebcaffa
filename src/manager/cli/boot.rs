//! What may end the manager before there is an engine.
//!
//! A mistake at the installation is said at once: the manager ends. Later, when the pod has run
//! before, a fault of the API is no reason to keep the engine down, and without a manager nobody
//! could start it: the fault is reported and tried again.

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::run::VOLUME_TIMEOUT;
use crate::http::{HttpSettings, Limits, Server};
use crate::supervisor::Journal;

/// Whether no manager of this pod has run before: there is no journal.
///
/// # Errors
/// The state directory cannot be used.
pub(super) async fn is_first_start(journal: Option<Journal>) -> Result<bool, Vec<String>> {
    let Some(journal) = journal else { return Ok(true) };
    match timeout(VOLUME_TIMEOUT, spawn_blocking(move || journal.check())).await {
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
) -> Result<Server, Vec<String>> {
    let server = Server::bind(settings, Limits::default()).await;
    let server =
        server.map_err(|errors| errors.into_iter().map(str::to_owned).collect::<Vec<_>>())?;
    let faults = server.faults();
    if is_first_start && !faults.is_empty() { Err(faults) } else { Ok(server) }
}
