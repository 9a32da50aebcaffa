//! Where the data of an engine is, which has named its directories: on a volume claim, on another volume, or in
//! the container itself. The pod alone does not say it: a variable, a file or a script may name another directory.

use k8s_openapi::api::core::v1::{Container, Volume};
use stayput_restart::DataPlace;

pub(super) mod elsewhere;

/// Something that is mounted in the engine's container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    path: String,
    is_claim: bool,
}

/// Everything that is mounted in a container.
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

/// Where the data is that an engine has in these directories of its container: of several, the place that is
/// the least safe. Unknown if it has named none. Links in the image are not followed.
pub(super) fn place(mounts: &[Mount], directories: &[String]) -> DataPlace {
    let paths = || mounts.iter().map(|mount| mount.path.as_str());
    let of = |directory: &String| match nearest(paths(), directory).map(|at| mounts[at].is_claim) {
        Some(true) => DataPlace::Claim,
        Some(false) => DataPlace::OtherVolume,
        None => DataPlace::Container,
    };
    directories.iter().map(of).max().unwrap_or_default()
}

/// Which of these paths is this one or above it, and the nearest.
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
