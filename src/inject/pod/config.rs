//! The engine's config: its Secret or ConfigMap, and how it is mounted now, or copied there by an init container, as
//! in the chart of the OpenSearch project.

use serde_json::Value;
use stayput_pod_spec::EngineImage;

use super::Pod;
use super::command::{script_at, words};
use crate::finding::ObjectIssue;
use crate::options::{is_in, plain};
use crate::yaml::Path;

/// The config that the manager copies to the engine's config directory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Config {
    /// Volume with the config, without a name.
    pub(super) volume: Value,
    /// Directory to which the manager copies the config.
    pub(super) stage: String,
    /// Mounts that the copy replaces, by path.
    pub(super) replaced: Vec<String>,
}

pub(super) fn find(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    engine: Option<EngineImage>,
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
    if let Some((message, remedy)) = unusable(pod, &mounts, &directory, engine) {
        found.push(ObjectIssue::error(field, message, remedy));
        return None;
    }
    let yml = engine.map(|engine| format!("{directory}/{}.yml", engine.name));
    let main = mounts.iter().find(|mount| Some(&mount.path) == yml.as_ref());
    let image = container["image"].as_str().unwrap_or_default();
    let is_known = given.is_some() || main.is_some() || EngineImage::of_image(image).is_some();
    let from_mounts = main.and_then(|main| volume(pod.spec, &main.volume));
    let copied = main.and_then(|main| copied_source(pod.spec, &main.volume));
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

/// Why no config can be copied to a directory, and what to do about it.
fn unusable(
    pod: Pod<'_>,
    mounts: &[Mount],
    directory: &str,
    engine: Option<EngineImage>,
) -> Option<(String, &'static str)> {
    if let Some(data) = data(pod, mounts, directory, engine) {
        return Some((
            format!("{directory} is for the engine's data ({data}): its config is read elsewhere"),
            "Give the directory where the engine reads its config: --config configmap/NAME=/DIRECTORY",
        ));
    }
    let whole = mounts.iter().find(|mount| mount.path == directory && mount.file.is_none())?;
    let (_, shown) = volume(pod.spec, &whole.volume)?;
    Some((
        format!("{directory} is a mount of {shown}, which the engine cannot write to"),
        "Mount its files one by one (subPath), or leave the mount out and give --config",
    ))
}

/// The volume or the directory of the image by which a directory is known to hold data.
fn data(
    pod: Pod<'_>,
    mounts: &[Mount],
    directory: &str,
    engine: Option<EngineImage>,
) -> Option<String> {
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
fn volume(spec: &Value, name: &str) -> Option<(Value, String)> {
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
    volume: String,
    /// Path of the mount, normalized by `plain`.
    pub(super) path: String,
    /// Path as written in the manifest.
    written: String,
    /// `subPath` of the mount.
    file: Option<String>,
    is_read_only: bool,
}

impl Mount {
    fn of(mount: &Value) -> Self {
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

/// Files in the engine's config directory that are mounted one by one from a Secret or a ConfigMap:
/// a change of them does not arrive in a living pod. `spec` is that of the pod.
pub fn files_by_sub_path(spec: &Value, container: &Value) -> Vec<String> {
    let Some(engine) = EngineImage::of(container) else { return Vec::new() };
    below(spec, &mounts(container), engine.config).collect()
}

/// Source of the files of a volume.
#[derive(Debug)]
struct CopiedConfig {
    /// The volume with the Secret or ConfigMap, without its name.
    source: Value,
    /// The Secret or ConfigMap, in words.
    shown: String,
    /// The init container.
    by: String,
    /// True if the init container copies the files unchanged and does nothing else.
    as_it_is: bool,
}

/// The Secret or ConfigMap from which an init container fills a volume, if it is only one.
fn copied_source(spec: &Value, filled: &str) -> Option<CopiedConfig> {
    let all = spec["initContainers"].as_array()?.iter();
    let mut fillers = all.map(|init| (init, mounts(init)));
    let mut fillers =
        fillers.by_ref().filter(|(_, mounts)| mounts.iter().any(|mount| mount.volume == filled));
    let (init, mounts) = fillers.next().filter(|_| fillers.next().is_none())?;
    let (targets, others): (Vec<Mount>, Vec<Mount>) =
        mounts.into_iter().partition(|mount| mount.volume == filled);
    let sources: Vec<Mount> =
        others.into_iter().filter(|mount| volume(spec, &mount.volume).is_some()).collect();
    let name = &sources.first()?.volume;
    if sources.iter().any(|mount| mount.volume != *name) {
        return None;
    }
    let (source, shown) = volume(spec, name)?;
    let by = init["name"].as_str().unwrap_or_default().to_owned();
    let as_it_is = keeps_names(&sources) && only_copies(init, &targets, &sources);
    Some(CopiedConfig { source, shown, by, as_it_is })
}

fn keeps_names(sources: &[Mount]) -> bool {
    let mut files = sources.iter().filter_map(|mount| Some((mount, mount.file.as_deref()?)));
    files.all(|(mount, file)| mount.path.rsplit('/').next() == Some(file))
}

/// True if the container does nothing but copy from `sources` to `targets`.
fn only_copies(init: &Value, targets: &[Mount], sources: &[Mount]) -> bool {
    let command = [words(&init["command"]), words(&init["args"])].concat();
    let Some(script) = script_at(&command) else {
        return copies(&command.join(" "), targets, sources);
    };
    let lines = command[script].lines().map(str::trim);
    let mut lines = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("set "));
    lines.all(|line| copies(line, targets, sources))
}

/// True for `cp FILE… DIRECTORY` where the directory is the volume and the files are those of
/// the source.
fn copies(line: &str, targets: &[Mount], sources: &[Mount]) -> bool {
    if line.contains([';', '&', '|', '<', '>', '$', '`', '\'', '"', '\\']) {
        return false;
    }
    let mut words = line.split_whitespace();
    if words.next().and_then(|program| program.rsplit('/').next()) != Some("cp") {
        return false;
    }
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    // Where it runs is not known.
    if !words.iter().all(|word| word.starts_with('/')) {
        return false;
    }
    let [from @ .., to] = &words[..] else { return false };
    let is_target = |mount: &Mount| mount.file.is_none() && mount.path == plain(to);
    let is_source = |word: &&str| match word.strip_suffix("/*").or(word.strip_suffix("/.")) {
        // The directory of the mounts.
        Some(directory) => sources.iter().all(|mount| is_in(&mount.path, &plain(directory))),
        None => sources.iter().any(|mount| {
            let path = plain(word);
            mount.path == path || (mount.file.is_none() && is_in(&path, &mount.path))
        }),
    };
    !from.is_empty() && targets.iter().any(is_target) && from.iter().all(is_source)
}
