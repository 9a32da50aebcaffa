//! Which files the configs of a pod have, as its manager has listed them: a status has only those of
//! the config that is mounted now.

use std::collections::BTreeMap;
use std::sync::Arc;

use stayput_api::{Config, Status};

/// One config of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// None if the manager could not read it.
    pub(super) checksum: Option<String>,
    /// Digest of each file that is part of the checksum, by path.
    pub(super) files: BTreeMap<String, String>,
}

/// The configs of a pod whose files are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Generations {
    pub(super) mounted: Option<Arc<Generation>>,
    /// The one that the engine runs on, if it was seen while it was mounted.
    run: Option<Arc<Generation>>,
}

impl Generations {
    /// What is known with this status, and was `before`.
    pub(super) fn with(before: Option<&Self>, status: &Status) -> Self {
        let mounted = status.config.as_ref().map(|config| Arc::new(Generation::of(config)));
        let run = status.run.as_ref().filter(|run| !run.config_uncertain);
        let run = run.and_then(|run| run.checksum.as_ref()).and_then(|checksum| {
            let before = before.and_then(|before| before.run.as_ref());
            let mut known = mounted.iter().chain(before);
            known.find(|one| one.checksum.as_ref() == Some(checksum)).cloned()
        });
        Self { mounted, run }
    }

    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Generation> {
        self.mounted.iter().chain(&self.run).map(AsRef::as_ref)
    }
}

impl Generation {
    fn of(config: &Config) -> Self {
        let files = config.files.iter().filter(|file| !file.live);
        Self {
            checksum: config.checksum.clone(),
            files: files.map(|file| (file.path.clone(), file.sha256.clone())).collect(),
        }
    }
}
