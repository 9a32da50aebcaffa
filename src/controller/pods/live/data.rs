//! The place of an engine's data, from the engine's own report of its directories: on a volume claim, on
//! another volume, or in the container itself; and whether another template has it elsewhere. The pod alone
//! does not tell: a variable, a file or a script may name another directory.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Volume, VolumeMount};
use serde_json::Value;
use stayput_restart::DataPlace;

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

/// Name of the setting, as in an argument of the engine.
const SETTING: &str = "path.data";
/// Variables from which the known images make the setting: those of the official ones, and Bitnami's.
const VARIABLES: [&str; 4] =
    [SETTING, "ES_SETTING_PATH_DATA", "ELASTICSEARCH_DATA_DIR_LIST", "OPENSEARCH_DATA_DIR_LIST"];

/// True if the engine of a pod that is made from the second template looks for its data at another place than
/// that of a pod that is made from the first, whose data is in these directories. A place that cannot be read
/// counts as another one.
pub(crate) fn is_data_elsewhere(
    pair: [&Value; 2],
    engine_container: &str,
    directories: &[String],
) -> bool {
    let [actual, wanted] = pair.map(|template| Places::of(template, engine_container, directories));
    actual.zip(wanted).is_none_or(|(actual, wanted)| actual.differ(&wanted))
}

/// The template has the setting, but not its value.
struct NotWritten;

/// The paths of the setting, from variables of the container or arguments of the engine. Empty if the
/// template does not have the setting.
fn settings(container: &Container) -> Result<Vec<String>, NotWritten> {
    let mut found = Vec::new();
    for variable in variables(container) {
        found.extend(split(variable.value.as_deref().ok_or(NotWritten)?));
    }
    let words = [&container.command, &container.args].into_iter().flatten().flatten();
    for word in words.filter(|word| word.contains(SETTING)) {
        let setting = word.strip_prefix("-E").unwrap_or(word).trim_start();
        let value = setting.strip_prefix(SETTING).and_then(|rest| rest.strip_prefix('='));
        // Anything else is a script.
        found.extend(split(value.ok_or(NotWritten)?));
    }
    if found.iter().any(|path| path.contains('$')) { Err(NotWritten) } else { Ok(found) }
}

fn variables(container: &Container) -> impl Iterator<Item = &EnvVar> {
    let all = container.env.iter().flatten();
    all.filter(|variable| VARIABLES.contains(&variable.name.as_str()))
}

fn split(value: &str) -> impl Iterator<Item = String> {
    let paths = value.split([',', ';']);
    paths.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty())
}

/// The nearest mount at this path or above it.
fn covers<'a>(mounts: &'a [VolumeMount], path: &str) -> Option<&'a VolumeMount> {
    let paths = mounts.iter().map(|mount| mount.mount_path.as_str());
    nearest(paths, path).map(|at| &mounts[at])
}

/// A directory, independent of the name of its mount: the volume, the mounted part of it, and the path below
/// that. Without a volume it is in the container.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Directory {
    volume: Option<String>,
    part: String,
    below: String,
}

/// Places of an engine's data.
#[derive(Debug)]
enum Places {
    /// The directories that the template names.
    Named(BTreeSet<Directory>),
    /// The directories that the image or a file names, from the engine's report, by path.
    Told(BTreeMap<String, Directory>),
}

impl Places {
    fn of(template: &Value, engine_container: &str, directories: &[String]) -> Option<Self> {
        let spec: PodSpec = serde_json::from_value(template["spec"].clone()).ok()?;
        let container = spec.containers.iter().find(|one| one.name == engine_container)?;
        let volumes = spec.volumes.as_deref().unwrap_or_default();
        let mounts = container.volume_mounts.as_deref().unwrap_or_default();
        let at = |path: &str| directory(container, volumes, covers(mounts, path), path);
        let setting = match settings(container) {
            Ok(paths) if !paths.is_empty() => {
                return Some(Self::Named(paths.iter().map(|path| at(path)).collect()));
            }
            Ok(_) => None,
            Err(NotWritten) => Some(raw_setting(container)),
        };
        let by_path = |path: &String| (components(path).join("/"), at(path));
        let mut told: BTreeMap<_, _> = directories.iter().map(by_path).collect();
        told.extend(setting.map(|setting| {
            let directory = Directory { volume: None, part: String::new(), below: setting };
            (SETTING.to_owned(), directory)
        }));
        Some(Self::Told(told))
    }

    fn differ(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(one), Self::Named(other)) => one != other,
            (Self::Told(one), Self::Told(other)) => one != other,
            (Self::Named(named), Self::Told(told)) | (Self::Told(told), Self::Named(named)) => {
                named.iter().ne(told.values().collect::<BTreeSet<_>>())
            }
        }
    }
}

fn directory(
    container: &Container,
    volumes: &[Volume],
    mount: Option<&VolumeMount>,
    path: &str,
) -> Directory {
    let all = components(path);
    let above = mount.map_or(0, |mount| components(&mount.mount_path).len());
    let part = mount.map(|mount| match (&mount.sub_path_expr, &mount.sub_path) {
        (Some(part), _) => format!("{part} {}", variables_in(container, part)),
        (None, part) => components(part.as_deref().unwrap_or_default()).join("/"),
    });
    Directory {
        volume: mount.map(|mount| content_of(&mount.name, volumes)),
        part: part.unwrap_or_default(),
        below: all[above..].join("/"),
    }
}

/// Definition of a volume, whatever its name. One that the template does not define is a volume claim of its
/// owner's, by that name.
fn content_of(name: &str, volumes: &[Volume]) -> String {
    let Some(volume) = volumes.iter().find(|volume| volume.name == name) else {
        return name.to_owned();
    };
    let unnamed = Volume { name: String::new(), ..volume.clone() };
    // Kubernetes' own types are always JSON.
    serde_json::to_value(unnamed).unwrap_or_default().to_string()
}

/// Text of the setting as the template has it, where that is not its value.
fn raw_setting(container: &Container) -> String {
    let mut raw = serde_json::json!(variables(container).collect::<Vec<_>>()).to_string();
    for word in [&container.command, &container.args].into_iter().flatten().flatten() {
        if word.contains(SETTING) {
            raw.push_str(word);
        }
    }
    let named = variables_in(container, &raw);
    format!("{raw} {named}")
}

/// The variables that a text names, as the template has them.
fn variables_in(container: &Container, text: &str) -> String {
    let all = container.env.iter().flatten();
    let is_named = |variable: &&EnvVar| {
        let name = &variable.name;
        [format!("$({name})"), format!("${name}"), format!("${{{name}}}")]
            .iter()
            .any(|reference| text.contains(reference))
    };
    let named = all.filter(is_named);
    serde_json::json!(named.collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests;
