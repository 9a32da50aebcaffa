//! Starts from kept generations, and keeps generations.

use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::kept::{Kept, KeptError, Role, Store};
use super::observed::{Shared, Work};
use super::prepare::Prepared;
use super::progress::Progress;
use super::stage;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

fn unusable(message: String) -> Refusal {
    Refusal::new(Code::NoLastGood, message)
}

impl Shared {
    pub(super) fn prepare_last_good(
        &self,
        work: &mut Work,
        store: Option<&Store>,
        expected: Option<&Checksum>,
        progress: &Progress,
    ) -> Result<Prepared, Refusal> {
        let store = store.ok_or_else(|| {
            unusable(
                "no config is kept as last good: that needs --keep-last-good and --stage for every \
                 --config directory"
                    .to_owned(),
            )
        })?;
        let kept = store.last_good(progress).map_err(|error| unusable(error.to_string()))?;
        let kept = kept.ok_or_else(|| {
            unusable("no config was ever ready here, so none is kept as last good".to_owned())
        })?;
        if let Some(expected) = expected.filter(|expected| **expected != kept.checksum) {
            return Err(Refusal::new(
                Code::ChecksumMismatch,
                format!("the last good config is {}, not {expected}", kept.checksum),
            ));
        }
        self.stage_kept(work, &kept, ConfigChoice::LastGood, progress)
    }

    /// Prepares the generation that the engine was last told to run. An engine that comes back by
    /// itself must come back: if that generation cannot be used, the engine gets what it would get
    /// without pinning.
    pub(super) fn prepare_pinned(
        &self,
        work: &mut Work,
        store: Option<&Store>,
        pinned: &Checksum,
        choice: ConfigChoice,
        progress: &Progress,
    ) -> Result<Prepared, Refusal> {
        let why = match self.find_pinned(work, store, pinned, choice, progress) {
            Err(refusal) if refusal.code == Code::NoLastGood => refusal.message,
            prepared => {
                self.published.unpinned(None);
                return prepared;
            }
        };
        let prepared = self.prepare_unpinned(work, store, choice, None, progress)?;
        let checksum = prepared.checksum.as_ref();
        let other = checksum.filter(|checksum| *checksum != pinned).map(|checksum| {
            format!(
                "the engine came back on {checksum}, because {pinned}, which it was last told to \
                 run, cannot be used: {why}"
            )
        });
        if let Some(message) = &other {
            tracing::error!("{message}");
        }
        self.published.unpinned(other);
        Ok(prepared)
    }

    fn find_pinned(
        &self,
        work: &mut Work,
        store: Option<&Store>,
        pinned: &Checksum,
        choice: ConfigChoice,
        progress: &Progress,
    ) -> Result<Prepared, Refusal> {
        if choice == ConfigChoice::Mounted {
            // Usually it is still mounted.
            match self.prepare_mounted(work, Some(pinned), progress) {
                Err(refusal)
                    if matches!(refusal.code, Code::ChecksumMismatch | Code::ConfigUnknown) => {}
                prepared => return prepared,
            }
        }
        let kept = store.map(|store| store.find(pinned, progress)).transpose();
        match kept.map_err(|error| unusable(error.to_string()))?.flatten() {
            Some(kept) => self.stage_kept(work, &kept, choice, progress),
            None => Err(unusable("it is not kept".to_owned())),
        }
    }

    fn stage_kept(
        &self,
        work: &mut Work,
        kept: &Kept,
        choice: ConfigChoice,
        progress: &Progress,
    ) -> Result<Prepared, Refusal> {
        if let Some((name, _)) = kept
            .files()
            .iter()
            .find(|(name, _)| !self.settings.dirs.iter().any(|dir| dir.name == *name))
        {
            let name = name.as_deref().unwrap_or("without a name");
            return Err(unusable(format!(
                "the kept config is that of a --config directory {name}, which is not set"
            )));
        }
        // Live files are linked to the mount, whichever config is used; a mount that cannot be read
        // has none.
        let (read, change_count) = self.observe(work, progress);
        let jobs = self.for_each_stage(
            |dir| {
                let name = &self.settings.dirs[dir].name;
                let items = kept.files().iter().filter(|(kept, _)| kept == name);
                items.map(|(_, item)| item.clone()).collect()
            },
            &read,
        )?;
        match stage::stage(&jobs, progress) {
            Ok(()) => Ok(Prepared {
                checksum: Some(kept.checksum.clone()),
                choice,
                files: kept.listed(),
                change_count,
                staged: true,
                fingerprint: Fingerprint::default(),
                to_keep: self.to_keep(Some(&kept.checksum), jobs),
            }),
            Err(error @ stage::Error::Source { .. }) => Err(unusable(format!(
                "the kept config is damaged: {error}; a new one is kept when the engine is next \
                 ready"
            ))),
            Err(error @ stage::Error::Target { .. }) => {
                Err(Refusal::new(Code::StageFailed, error.to_string()))
            }
        }
    }

    /// Keeps what was prepared, and publishes the last good checksum.
    pub(super) async fn keep(
        self: &Arc<Self>,
        prepared: &Prepared,
        role: Role,
    ) -> Result<(), KeptError> {
        let (Some(store), Some(staged)) = (&self.store, prepared.to_keep.clone()) else {
            return Ok(());
        };
        let turn = store.turn_after_all().await;
        let keeping = turn.begin(move |store, progress| {
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
        let turn = store.turn_after_all().await;
        match turn.begin(|store, progress| store.last_good(progress)).done().await {
            Ok(Ok(kept)) => self.published.last_good(kept.map(|kept| kept.checksum)),
            Ok(Err(error)) => self.published.kept_problem(Some(error.to_string())),
            // The panic is reported.
            Err(_) => {}
        }
    }
}
