//! Keeps generations, and finds kept ones.

use std::sync::Arc;

use super::kept::{KeptError, Role};
use super::observed::Shared;
use super::prepare::Prepared;

impl Shared {
    /// Keeps a prepared generation, and publishes the last good checksum.
    pub(super) async fn keep(
        self: &Arc<Self>,
        prepared: &Prepared,
        role: Role,
    ) -> Result<(), KeptError> {
        let (Some(store), Some(staged)) = (&self.store, prepared.to_keep.clone()) else {
            return Ok(());
        };
        let permit = store.permit_after_all().await;
        let keeping = permit.begin(move |store, progress| {
            let kept = store.keep(&staged, role, progress);
            (kept, store.last_good(progress))
        });
        let (kept, last_good) = keeping.done().await?;
        if let Ok(last_good) = last_good {
            self.published.last_good(last_good.map(|kept| kept.checksum));
        }
        self.published.kept_problem(kept.as_ref().err().map(ToString::to_string));
        kept
    }

    /// Finds the last good generation that an earlier manager kept.
    pub(super) async fn find_last_good(self: Arc<Self>) {
        let Some(store) = &self.store else { return };
        let permit = store.permit_after_all().await;
        match permit.begin(|store, progress| store.last_good(progress)).done().await {
            Ok(Ok(kept)) => self.published.last_good(kept.map(|kept| kept.checksum)),
            Ok(Err(error)) => self.published.kept_problem(Some(error.to_string())),
            // The panic is reported.
            Err(_) => {}
        }
    }
}
