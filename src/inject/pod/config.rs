//! The engine's config: its Secret or ConfigMap, and how it is mounted now.

use serde_json::Value;

use super::Pod;
use super::copied_config::{self, CopiedConfig};
use crate::edit::Path;
use crate::engine::Engine;
use crate::finding::ObjectIssue;
use crate::paths::{is_in, plain};

/// The config that the manager copies to the engine's config directory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Volume with the config, without a name.
    pub(crate) volume: Value,
    /// Directory to which the manager copies the config.
    pub(crate) stage: String,
    /// Mounts that the copy replaces, by path.
    pub(crate) replaced: Vec<String>,
}

pub(super) fn find(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    engine: Option<Engine>,
    found: &mut Vec<ObjectIssue>,
) -> Option<Config> {
    let field = format!("{at}.volumeMounts");
    let chosen = pod.options.config.as_ref();
    let given = chosen.and_then(|chosen| chosen.directory.clone());
    let Some(directory) = given.clone().or_else(|| engine.map(|engine| engine.config.to_owned()))
    else {
        found.push(ObjectIssue::note(
            field,
            "it is not known which engine this is, so its config is not watched",
            "Give its config with the directory where it reads it: --config configmap/NAME=/DIRECTORY",
        ));
        return None;
    };
    let mounts = mounts(container);
    if let Some(data) = data(pod, &mounts, &directory, engine) {
        found.push(ObjectIssue::error(
            field,
            format!("{directory} is for the engine's data ({data}): its config is read elsewhere"),
            "Give the directory where the engine reads its config: --config configmap/NAME=/DIRECTORY",
        ));
        return None;
    }
    let whole = mounts.iter().find(|mount| mount.path == directory && mount.file.is_none());
    if let Some(volume) = whole.and_then(|mount| volume(pod.spec, &mount.volume)) {
        found.push(ObjectIssue::error(
            field,
            format!("{directory} is a mount of {}, which the engine cannot write to", volume.1),
            "Mount its files one by one (subPath), or leave the mount out and give --config",
        ));
        return None;
    }
    let yml = engine.map(|engine| format!("{directory}/{}.yml", engine.name));
    let main = mounts.iter().find(|mount| Some(&mount.path) == yml.as_ref());
    let image = container["image"].as_str().unwrap_or_default();
    let is_known = given.is_some() || main.is_some() || Engine::of_image(image).is_some();
    let from_mounts = main.and_then(|main| volume(pod.spec, &main.volume));
    let copied = main.and_then(|main| copied_config::source(pod.spec, &main.volume));
    let is_writable = container["securityContext"]["readOnlyRootFilesystem"] != true
        || is_writable(pod.spec, &mounts, &directory);
    let source = match (chosen, from_mounts) {
        (Some(_), _) if !is_known => {
            found.push(ObjectIssue::error(
                format!("{at}.image"),
                format!("it is not known where the image {image} reads its config"),
                "Give the directory: --config configmap/NAME=/DIRECTORY",
            ));
            return None;
        }
        (Some(chosen), _) => chosen.source.volume(),
        (None, Some((source, _))) => source,
        (None, None) => match copied {
            Some(copied) if copied.as_it_is && is_writable => copied.source,
            copied => {
                let yml = yml.unwrap_or_default();
                let directory = if is_known { "" } else { "=/DIRECTORY" };
                let (message, remedy) = not_watched(&yml, main.is_some(), copied, directory);
                found.push(ObjectIssue::note(field, message, remedy));
                return None;
            }
        },
    };
    if !is_writable {
        found.push(ObjectIssue::error(
            format!("{at}.securityContext.readOnlyRootFilesystem"),
            format!("the config is to be copied to {directory}, which cannot be written to"),
            format!(
                "Mount an emptyDir at {directory}, into which an init container copies the image's own files, \
                 or leave out readOnlyRootFilesystem"
            ),
        ));
    }
    let replaced = replaced(&mounts, main, &directory, at, found);
    others(pod.spec, &mounts, &replaced, &directory, at, found);
    Some(Config { volume: source, stage: directory, replaced })
}

/// The volume or the directory of the image by which a directory is known to hold data.
fn data(pod: Pod<'_>, mounts: &[Mount], directory: &str, engine: Option<Engine>) -> Option<String> {
    let claim = mounts.iter().find(|mount| mount.path == directory && pod.is_claim(&mount.volume));
    let of_image = engine.map(|engine| engine.data()).filter(|data| is_in(directory, data));
    claim.map(|mount| format!("the claim {}", mount.volume)).or(of_image)
}

/// Why the config is not watched, and what to do about it.
fn not_watched(
    yml: &str,
    is_mounted: bool,
    copied: Option<CopiedConfig>,
    directory: &str,
) -> (String, String) {
    let either = format!("--config secret/NAME{directory} or --config configmap/NAME{directory}");
    match copied {
        Some(CopiedConfig { shown, by, as_it_is: true, .. }) => (
            format!(
                "{yml} is copied there by the init container {by} from {shown}, and the manager cannot write to \
                 that directory, so the config is not watched"
            ),
            "Leave out readOnlyRootFilesystem, or mount an emptyDir at that directory".to_owned(),
        ),
        Some(CopiedConfig { shown, by, .. }) => (
            format!("{yml} is written by the init container {by}, so the config is not watched"),
            format!("If it only copies it from {shown}, name that: {either}"),
        ),
        None if is_mounted => (
            format!(
                "the volume mounted at {yml} is no Secret or ConfigMap, so the config is not watched"
            ),
            format!("If there is one, name it: {either}"),
        ),
        None => (
            format!("no Secret or ConfigMap is mounted at {yml}, so the config is not watched"),
            format!("If there is one, name it: {either}"),
        ),
    }
}

/// True if the directory is on a volume that can be written to.
fn is_writable(spec: &Value, mounts: &[Mount], directory: &str) -> bool {
    mounts.iter().any(|mount| {
        is_in(directory, &mount.path)
            && !mount.is_read_only
            && volume(spec, &mount.volume).is_none()
    })
}

/// The mounts of single files of the volume with the yml: the whole volume is copied instead.
fn replaced(
    mounts: &[Mount],
    main: Option<&Mount>,
    directory: &str,
    at: &Path,
    found: &mut Vec<ObjectIssue>,
) -> Vec<String> {
    let Some(main) = main else { return Vec::new() };
    let mut paths = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.volume == main.volume) {
        let Some(name) = mount.name_in(directory) else { continue };
        if mount.file.as_deref() != Some(name) {
            found.push(ObjectIssue::error(
                format!("{at}.volumeMounts[mountPath={}].subPath", mount.written),
                format!("the file has another name there than {name}; it is copied under its own"),
                format!("Rename it to {name} in its Secret or ConfigMap"),
            ));
        }
        paths.push(mount.written.clone());
    }
    paths
}

/// A note about the other files that stay mounted by `subPath`.
fn others(
    spec: &Value,
    mounts: &[Mount],
    replaced: &[String],
    directory: &str,
    at: &Path,
    found: &mut Vec<ObjectIssue>,
) {
    for path in below(spec, mounts, directory).filter(|path| !replaced.contains(path)) {
        let place = plain(&path);
        let (above, name) = place.rsplit_once('/').unwrap_or_default();
        // Keys have no directories.
        let remedy = if above == directory {
            "Move the file to the Secret or ConfigMap of the engine's yml".to_owned()
        } else {
            format!("Mount what has {name} as a whole at {above}, without subPath")
        };
        found.push(ObjectIssue::note(
            format!("{at}.volumeMounts[mountPath={path}]"),
            "it stays mounted by subPath: a change of it does not arrive in a living pod",
            remedy,
        ));
    }
}

/// The paths below a directory at which single files of a Secret or a ConfigMap are mounted.
pub(super) fn single_files(spec: &Value, container: &Value, directory: &str) -> Vec<String> {
    below(spec, &mounts(container), directory).collect()
}

fn below<'a>(
    spec: &'a Value,
    mounts: &'a [Mount],
    directory: &str,
) -> impl Iterator<Item = String> + use<'a> {
    let below = format!("{directory}/");
    let files = mounts.iter().filter(move |mount| mount.path.starts_with(&below));
    files
        .filter(|mount| mount.file.is_some() && volume(spec, &mount.volume).is_some())
        .map(|mount| mount.written.clone())
}

pub(super) fn mounts(container: &Value) -> Vec<Mount> {
    container["volumeMounts"].as_array().into_iter().flatten().map(Mount::of).collect()
}

/// A volume that is a Secret or a ConfigMap, or several of them in one: its source, and in words.
pub(super) fn volume(spec: &Value, name: &str) -> Option<(Value, String)> {
    let all = spec["volumes"].as_array()?;
    let mut volume = all.iter().find(|volume| volume["name"].as_str() == Some(name))?.clone();
    let words =
        match (volume["secret"]["secretName"].as_str(), volume["configMap"]["name"].as_str()) {
            (Some(secret), _) => format!("the Secret {secret}"),
            (None, Some(map)) => format!("the ConfigMap {map}"),
            (None, None) if is_projected_config(&volume) => format!("the projected volume {name}"),
            (None, None) => return None,
        };
    volume.as_object_mut()?.remove("name");
    Some((volume, words))
}

/// True if all sources of a projected volume are config. A token among them would change all the time.
fn is_projected_config(volume: &Value) -> bool {
    let sources = volume["projected"]["sources"].as_array();
    sources.is_some_and(|sources| {
        sources.iter().all(|source| source["secret"].is_object() || source["configMap"].is_object())
    })
}

pub(super) struct Mount {
    pub(super) volume: String,
    /// Path of the mount, normalized by `plain`.
    pub(super) path: String,
    /// Path as written in the manifest.
    written: String,
    /// `subPath` of the mount.
    pub(super) file: Option<String>,
    is_read_only: bool,
}

impl Mount {
    pub(super) fn of(mount: &Value) -> Self {
        let text = |field: &str| mount[field].as_str().map(str::to_owned);
        let written = text("mountPath").unwrap_or_default();
        Self {
            volume: text("name").unwrap_or_default(),
            path: plain(&written),
            written,
            file: text("subPath"),
            is_read_only: mount["readOnly"] == true,
        }
    }

    /// File name of the mount, if it is directly in this directory.
    fn name_in(&self, directory: &str) -> Option<&str> {
        let name = self.path.strip_prefix(directory)?.strip_prefix('/')?;
        (!name.contains('/')).then_some(name)
    }
}
