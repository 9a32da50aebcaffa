//! The files of a pod's configs, as its manager lists them.

use std::collections::BTreeMap;

use stayput_api::{ConfigFile, Status};

/// One config of a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// Checksum of the config, if the manager could read it.
    pub(super) checksum: Option<String>,
    /// Digest of each file that is part of the checksum, by path.
    pub(super) files: BTreeMap<String, String>,
    /// Digest without `cluster.initial_master_nodes` of each file that has it, by path.
    pub(super) formed: BTreeMap<String, String>,
}

/// The configs of a pod whose files are known.
#[derive(Debug, Default)]
pub(super) struct Generations {
    pub(super) mounted: Option<Generation>,
    /// The config that the engine runs on, while it is not known to be the mounted one.
    run: Option<Generation>,
}

impl Generations {
    /// The configs whose files a status lists.
    pub(super) fn of(status: &Status) -> Self {
        let Some(config) = &status.config else { return Self::default() };
        let run = status.run.as_ref().zip(config.run_files.as_ref());
        Self {
            mounted: Some(Generation::of(&config.checksum, &config.files)),
            run: run.map(|(run, files)| Generation::of(&run.checksum, files)),
        }
    }

    /// Both configs, as far as they are known.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Generation> {
        self.mounted.iter().chain(&self.run)
    }
}

impl Generation {
    fn of(checksum: &Option<String>, files: &[ConfigFile]) -> Self {
        let counted = || files.iter().filter(|file| !file.live);
        let formed = |file: &ConfigFile| Some((file.path.clone(), file.formed_sha256.clone()?));
        Self {
            checksum: checksum.clone(),
            files: counted().map(|file| (file.path.clone(), file.sha256.clone())).collect(),
            formed: counted().filter_map(formed).collect(),
        }
    }
}
