//! A stopped engine is started without an answer of the other engines: they may hang, or elect another
//! master, and nothing that they could say changes the start.

use std::future::pending;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::engine::ViewError;

/// How long the engine's answers are waited for when a start comes next.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads the engine; for a short time only, once the managers have shown that a start comes next.
pub(super) async fn read<T>(
    engine: impl Future<Output = Result<T, ViewError>>,
    comes_next: oneshot::Receiver<bool>,
) -> Result<T, ViewError> {
    let patience = async {
        match comes_next.await {
            Ok(true) => sleep(PATIENCE).await,
            Ok(false) | Err(_) => pending().await,
        }
    };
    tokio::select! {
        biased;
        engine = engine => engine,
        () = patience => Err(ViewError::StartFirst(PATIENCE)),
    }
}
