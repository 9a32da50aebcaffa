//! Starts from kept generations.

use super::fingerprint::Fingerprint;
use super::kept::Kept;
use super::observed::Shared;
use super::prepare::{Prepared, Volumes, Wanted};
use super::stage;
use stayput_api::checksum::Checksum;
use stayput_api::{Code, ConfigChoice, Refusal};

fn unusable(message: String) -> Refusal {
    Refusal::new(Code::NoLastGood, message)
}

impl Shared {
    pub(super) fn prepare_last_good(
        &self,
        volumes: &mut Volumes<'_>,
        expected: Option<&Checksum>,
    ) -> Result<Prepared, Refusal> {
        let store = match volumes.store {
            Some(store) => store.map_err(|hanging| unusable(hanging.to_string()))?,
            None => {
                return Err(unusable(
                    "no config is kept as last good: that needs --keep-last-good and --stage for \
                     every --config directory"
                        .to_owned(),
                ));
            }
        };
        let kept =
            store.last_good(volumes.progress).map_err(|error| unusable(error.to_string()))?;
        let kept = kept.ok_or_else(|| {
            unusable("no config was ever ready here, so none is kept as last good".to_owned())
        })?;
        if let Some(expected) = expected.filter(|expected| **expected != kept.checksum) {
            return Err(Refusal::new(
                Code::ChecksumMismatch,
                format!("the last good config is {}, not {expected}", kept.checksum),
            ));
        }
        self.stage_kept(volumes, &kept, ConfigChoice::LastGood)
    }

    /// Prepares the generation that the engine was last told to run. An engine that comes back by
    /// itself must come back: if that generation cannot be used, the engine gets the config that it
    /// would get without pinning.
    pub(super) fn prepare_pinned(
        &self,
        volumes: &mut Volumes<'_>,
        pinned: &Checksum,
        wanted: &Wanted,
    ) -> Result<Prepared, Refusal> {
        let why = match self.find_pinned(volumes, pinned, wanted.choice) {
            Err(refusal) if refusal.code == Code::NoLastGood => refusal.message,
            prepared => {
                self.published.unpinned(None);
                return prepared;
            }
        };
        let prepared = self.prepare_unpinned(volumes, wanted)?;
        let checksum = prepared.checksum.as_ref();
        let other = checksum.filter(|checksum| *checksum != pinned).map(|checksum| {
            format!(
                "the engine came back on {checksum}, because the last requested config, {pinned}, cannot \
                 be used: {why}"
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
        volumes: &mut Volumes<'_>,
        pinned: &Checksum,
        choice: ConfigChoice,
    ) -> Result<Prepared, Refusal> {
        if choice == ConfigChoice::Mounted {
            // Usually it is still mounted.
            match self.prepare_mounted(volumes, Some(pinned)) {
                Err(refusal)
                    if matches!(refusal.code, Code::ChecksumMismatch | Code::ConfigUnknown) => {}
                prepared => return prepared,
            }
        }
        let store = volumes.store.transpose().map_err(|hanging| unusable(hanging.to_string()))?;
        let kept = store.map(|store| store.find(pinned, volumes.progress)).transpose();
        match kept.map_err(|error| unusable(error.to_string()))?.flatten() {
            Some(kept) => self.stage_kept(volumes, &kept, choice),
            None => Err(unusable("it is not kept".to_owned())),
        }
    }

    fn stage_kept(
        &self,
        volumes: &mut Volumes<'_>,
        kept: &Kept,
        choice: ConfigChoice,
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
        let (read, change_count) = self.observe(volumes.work, volumes.progress);
        let jobs = self.for_each_stage(
            |dir| {
                let name = &self.settings.dirs[dir].name;
                let items = kept.files().iter().filter(|(kept, _)| kept == name);
                items.map(|(_, item)| item.clone()).collect()
            },
            &read,
        )?;
        match stage::stage(&jobs, volumes.progress) {
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
}
