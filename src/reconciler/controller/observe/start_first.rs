//! A stopped engine is started without an answer of the other engines: they may hang, or elect another
//! master, and nothing that they could say changes the start.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::engine::ViewError;
use super::managers::Answer;
use stayput_restart::{Ledger, awaits_start};

/// How long the engine's answers are waited for when a start comes next.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a start of this ledger comes next, by what the managers have answered.
pub(super) fn comes_next(ledger: &Ledger, answers: &[Answer]) -> bool {
    let answers: BTreeMap<&str, &Answer> =
        answers.iter().map(|answer| (answer.uid(), answer)).collect();
    awaits_start(ledger, |uid| answers.get(uid)?.manager())
}

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
