//! Finds the place of an engine's data from the engine's own report of its directories: on a volume claim, on
//! another volume, or in the container itself. The pod alone does not tell: a variable, a file or a script
//! may name another directory.

use k8s_openapi::api::core::v1::{Container, Volume};
use stayput_restart::DataPlace;

pub(super) mod elsewhere;

/// A mount of the engine's container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    path: String,
    is_claim: bool,
}

/// All mounts of a container.
pub(super) fn mounts(container: &Container, volumes: &[Volume]) -> Vec<Mount> {
    let is_claim = |name: &str| {
        let volume = volumes.iter().find(|volume| volume.name == name);
        volume.is_some_and(|volume| volume.persistent_volume_claim.is_some())
    };
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .map(|mount| Mount { path: mount.mount_path.clone(), is_claim: is_claim(&mount.name) })
        .collect()
}

/// The place of an engine's data, which is in these directories of its container: of several, the least safe
/// one. Unknown without directories. Links in the image are not followed.
pub(super) fn place(mounts: &[Mount], directories: &[String]) -> DataPlace {
    let paths = || mounts.iter().map(|mount| mount.path.as_str());
    let of = |directory: &String| match nearest(paths(), directory).map(|at| mounts[at].is_claim) {
        Some(true) => DataPlace::Claim,
        Some(false) => DataPlace::OtherVolume,
        None => DataPlace::Container,
    };
    directories.iter().map(of).max().unwrap_or_default()
}

/// Index of the nearest of the mounted paths that is this one or above it.
fn nearest<'p>(mounted: impl Iterator<Item = &'p str>, path: &str) -> Option<usize> {
    let path = components(path);
    let parts = mounted.map(components).enumerate();
    let at_or_above = parts.filter(|(_, mounted)| path.starts_with(mounted));
    at_or_above.max_by_key(|(_, mounted)| mounted.len()).map(|(at, _)| at)
}

fn components(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

#[cfg(test)]
mod tests;
