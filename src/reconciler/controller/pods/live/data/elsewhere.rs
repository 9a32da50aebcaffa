//! Whether the engine of a pod has its data where that of another template of its owner has it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodSpec, Volume, VolumeMount};
use serde_json::Value;

use super::{DATA, NotWritten, PATHS, SETTING, components, covers, settings};

/// Whether the engine of a pod that is made from the second template looks for its data at another place than that
/// of one that is made from the first. What cannot be read may be another place.
pub(in crate::controller) fn is_data_elsewhere(pair: [&Value; 2], engine_container: &str) -> bool {
    let [actual, wanted] = pair.map(|template| Places::of(template, engine_container));
    actual.zip(wanted).is_none_or(|(actual, wanted)| actual.differ(&wanted))
}

/// A directory, whatever mounts it: the volume, what of it is mounted, and the path below that. Of no volume: in the
/// container.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Directory {
    volume: Option<String>,
    part: String,
    below: String,
}

/// Where the data may be.
#[derive(Debug)]
enum Places {
    /// The template names it.
    Named(BTreeSet<Directory>),
    /// The image or a file does, by path.
    Supposed(BTreeMap<String, Directory>),
}

impl Places {
    fn of(template: &Value, engine_container: &str) -> Option<Self> {
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
        let is_known = |path: &&str| covers(mounts, path).is_some();
        let known: Vec<&str> = PATHS.into_iter().filter(is_known).collect();
        let has_data = |mount: &&VolumeMount| match mounts.iter().any(|one| one.name == DATA) {
            true => mount.name == DATA,
            false => is_kept(&mount.name, volumes),
        };
        let paths: Vec<&str> = match setting.is_none() && !known.is_empty() {
            true => known,
            false => mounts.iter().filter(has_data).map(|mount| &*mount.mount_path).collect(),
        };
        let by_path = |path: &str| (components(path).join("/"), at(path));
        let mut supposed: BTreeMap<_, _> = paths.into_iter().map(by_path).collect();
        supposed.extend(setting.map(|setting| {
            let directory = Directory { volume: None, part: String::new(), below: setting };
            (SETTING.to_owned(), directory)
        }));
        Some(Self::Supposed(supposed))
    }

    fn differ(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(one), Self::Named(other)) => one != other,
            (Self::Supposed(one), Self::Supposed(other)) => one != other,
            (Self::Named(named), Self::Supposed(supposed))
            | (Self::Supposed(supposed), Self::Named(named)) => {
                named.iter().ne(supposed.values().collect::<BTreeSet<_>>())
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

/// What a volume is, whatever its name. One that the template does not have is a claim of its owner's, by that name.
fn content_of(name: &str, volumes: &[Volume]) -> String {
    let Some(volume) = volumes.iter().find(|volume| volume.name == name) else {
        return name.to_owned();
    };
    let unnamed = Volume { name: String::new(), ..volume.clone() };
    // Kubernetes' own types are always JSON.
    serde_json::to_value(unnamed).unwrap_or_default().to_string()
}

/// Whether a volume stays when the pod is deleted.
fn is_kept(name: &str, volumes: &[Volume]) -> bool {
    let volume = volumes.iter().find(|volume| volume.name == name);
    volume.is_none_or(|volume| volume.persistent_volume_claim.is_some())
}

/// The setting as the template has it, where that is not its value.
fn raw_setting(container: &Container) -> String {
    let variables = container.env.iter().flatten().filter(|variable| variable.name == SETTING);
    let mut raw = serde_json::json!(variables.collect::<Vec<_>>()).to_string();
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
    let named = all.filter(|variable| text.contains(&format!("$({})", variable.name)));
    serde_json::json!(named.collect::<Vec<_>>()).to_string()
}
