//! Secrets and ConfigMaps that an engine's container reads and nobody watches: volumes that it
//! mounts as a whole beside the directories of `--config`. A change of them gets into the mounted
//! files, and nothing tells whether the engine has read it.

use serde_json::Value;

use crate::manager_options::{NotWritten, values};
use crate::mounted_config::{components, is_part_of_volume, mount_path, named_directory};
use crate::source::Source;
use crate::template::containers;
use crate::uses::SERVICE_ACCOUNT;
use crate::volumes::{Part, parts, volume};

/// A Secret or ConfigMap that is mounted and not watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unwatched {
    /// The object.
    pub source: Source,
    /// Path where the object is mounted.
    pub path: String,
}

/// Options of the manager that name files it reads itself.
const OWN: [&str; 8] = [
    "tls-cert",
    "tls-key",
    "client-ca",
    "jwt-key",
    "jwt-public-key",
    "jwks",
    "ready-ca",
    "ready-auth",
];

/// Objects that the engine's container mounts as a whole and its manager does not watch, without those that
/// the manager reads itself. Empty if the template does not say which, or has no manager.
pub fn unwatched(template: &Value, engine_container: &str) -> Vec<Unwatched> {
    let mut all = containers(template, "containers");
    let container = all.find(|container| container["name"] == engine_container);
    container.and_then(|container| of_container(template, container).ok()).unwrap_or_default()
}

fn of_container(template: &Value, container: &Value) -> Result<Vec<Unwatched>, NotWritten> {
    let directories = values(container, "config")?;
    if directories.is_empty() {
        return Ok(vec![]);
    }
    let watched: Vec<&str> = directories.iter().map(|one| named_directory(one).1).collect();
    let mut own = Vec::new();
    for option in OWN {
        own.extend(values(container, option)?);
    }
    let is_below =
        |path: &str, directory: &str| components(path).starts_with(&components(directory));
    let mounts = || container["volumeMounts"].as_array().into_iter().flatten();
    let is_watched =
        |mount: &Value| watched.iter().any(|directory| is_below(mount_path(mount), directory));
    let is_own = |mount: &Value| own.iter().any(|file| is_below(file, mount_path(mount)));
    let sources = |mount: &Value| volume(template, &mount["name"]).map(parts).unwrap_or_default();
    // What is watched elsewhere as well restarts the engine.
    let as_a_whole = |part: Part| part.items.is_none().then_some(part.source);
    let known: Vec<Source> = mounts()
        .filter(|mount| is_watched(mount))
        .flat_map(sources)
        .filter_map(as_a_whole)
        .collect();
    let others = mounts().filter(|mount| {
        let is_left_out = is_part_of_volume(mount) || mount_path(mount) == SERVICE_ACCOUNT;
        !is_left_out && !is_watched(mount) && !is_own(mount)
    });
    let mut found: Vec<Unwatched> = others
        .flat_map(|mount| {
            let path = mount_path(mount).to_owned();
            let part = move |part: Part| Unwatched { source: part.source, path: path.clone() };
            sources(mount).into_iter().map(part)
        })
        .filter(|one| !known.contains(&one.source))
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}
