//! The manifest of our files in a target: `.stayput-staged.json` beside them.
//!
//! In the target and not in the state directory, because it must live exactly as long as what it
//! describes: a target in the container's own layer is gone after a container restart.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::{Error, ManifestFault, TargetFault};
use super::stays_below;
use super::target::Target;

/// Name of the manifest in the target.
pub(super) const NAME: &str = ".stayput-staged.json";
const SCHEMA: u32 = 1;
/// Large enough for the allowed number of files with long names.
const LARGEST: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    schema: u32,
    /// Paths below the target. The BTreeSet keeps the file the same for the same paths.
    paths: BTreeSet<PathBuf>,
}

impl Manifest {
    /// The manifest with these paths.
    pub(super) fn of<'a>(
        target: &Target,
        paths: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Self, Error> {
        let mut all = BTreeSet::new();
        all.extend(paths.cloned());
        for path in &all {
            if !stays_below(path) {
                let message = format!("{} is not a path below it", path.display());
                return Err(target.error(TargetFault::Conflict(message)));
            }
            if path.to_str().is_none() {
                let message =
                    format!("the name of {} is not UTF-8: rename the file", path.display());
                return Err(target.error(TargetFault::Conflict(message)));
            }
            if path.starts_with(NAME) || path.starts_with(super::target::FILLED) {
                let message = format!("the config has a {}, a name stayput needs", path.display());
                return Err(target.error(TargetFault::Conflict(message)));
            }
        }
        Ok(Self { schema: SCHEMA, paths: all })
    }

    /// The manifest in the target; an empty one if there is none.
    pub(super) fn read(target: &Target) -> Result<Self, Error> {
        let Some(text) = target.read(NAME, LARGEST)? else {
            return Ok(Self { schema: SCHEMA, paths: BTreeSet::new() });
        };
        let unusable = |source| target.error(TargetFault::Manifest { name: NAME, source });
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| unusable(ManifestFault::Syntax(error)))?;
        if manifest.schema != SCHEMA {
            return Err(unusable(ManifestFault::OtherVersion));
        }
        // The engine may write here, and the manager removes the listed files, possibly as root.
        if !manifest.paths.iter().all(|path| stays_below(path)) {
            return Err(unusable(ManifestFault::Outside));
        }
        Ok(manifest)
    }

    /// Replaces the manifest in the target, durably.
    pub(super) fn write(&self, target: &Target) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(|error| {
            let action = format!("cannot write {NAME}");
            target.error(TargetFault::Unwritten { action, source: error.into() })
        })?;
        target.replace(NAME, &text)
    }

    /// The paths of both manifests.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.paths.extend(other.paths.iter().cloned());
        both
    }

    /// The paths that are not in the other manifest.
    pub(super) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.paths.difference(&other.paths)
    }
}
