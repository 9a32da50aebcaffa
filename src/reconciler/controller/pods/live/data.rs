//! Where the data of an engine is, as far as its pod says: on a volume claim, on another volume, or in the
//! container itself.

use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};
use stayput_restart::DataPlace;

pub(super) mod elsewhere;

/// Where the known images keep the data, and the engines' packages: `path.data` of the official images,
/// Bitnami's, and what `.deb` and `.rpm` write.
const PATHS: [&str; 6] = [
    "/usr/share/elasticsearch/data",
    "/usr/share/opensearch/data",
    "/bitnami/elasticsearch/data",
    "/bitnami/opensearch/data",
    "/var/lib/elasticsearch",
    "/var/lib/opensearch",
];

/// The volume of that name is the data of a declared cluster, and by custom that of others.
const DATA: &str = "data";

/// The setting, as a variable or as an argument of the engine.
const SETTING: &str = "path.data";

/// Where the data is of an engine that runs in this container.
pub(super) fn place(container: &Container, volumes: &[Volume]) -> DataPlace {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let on = |mount: &VolumeMount| match is_claim(&mount.name, volumes) {
        true => DataPlace::Claim,
        false => DataPlace::OtherVolume,
    };
    match settings(container) {
        Err(NotWritten) => return DataPlace::Unknown,
        Ok(paths) if !paths.is_empty() => {
            let places =
                paths.iter().map(|path| covers(mounts, path).map_or(DataPlace::Container, on));
            return places.max().unwrap_or_default();
        }
        Ok(_) => {}
    }
    let known = PATHS.iter().filter_map(|path| covers(mounts, path));
    if let Some(place) = known.map(on).max() {
        return place;
    }
    if let Some(mount) = mounts.iter().find(|mount| mount.name == DATA) {
        return on(mount);
    }
    // An image of one's own may have its data there.
    match mounts.iter().any(|mount| is_claim(&mount.name, volumes)) {
        true => DataPlace::Unknown,
        false => DataPlace::Container,
    }
}

/// What is mounted at this path or above it, the nearest.
fn covers<'a>(mounts: &'a [VolumeMount], path: &str) -> Option<&'a VolumeMount> {
    let path = components(path);
    let at_or_above =
        mounts.iter().filter(|mount| path.starts_with(&components(&mount.mount_path)));
    at_or_above.max_by_key(|mount| components(&mount.mount_path).len())
}

fn components(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

fn is_claim(name: &str, volumes: &[Volume]) -> bool {
    let volume = volumes.iter().find(|volume| volume.name == name);
    volume.is_some_and(|volume| volume.persistent_volume_claim.is_some())
}

/// The pod has the setting, and not its value.
struct NotWritten;

/// The paths of the setting, which the images' entrypoints take from variables of the container, and the
/// engine from its arguments. Empty if the pod does not have it.
fn settings(container: &Container) -> Result<Vec<String>, NotWritten> {
    let mut found = Vec::new();
    for variable in container.env.iter().flatten().filter(|variable| variable.name == SETTING) {
        found.extend(split(variable.value.as_deref().ok_or(NotWritten)?));
    }
    let words = [&container.command, &container.args].into_iter().flatten().flatten();
    for word in words {
        let setting = word.strip_prefix("-E").unwrap_or(word).trim_start();
        let value = setting.strip_prefix(SETTING).and_then(|rest| rest.strip_prefix('='));
        found.extend(value.into_iter().flat_map(split));
    }
    match found.iter().any(|path| path.contains("$(")) {
        true => Err(NotWritten),
        false => Ok(found),
    }
}

fn split(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(|path| path.trim().to_owned()).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests;
