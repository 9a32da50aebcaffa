//! The engine's config: which Secret or ConfigMap it is, and how it is mounted now.

use serde_json::Value;

use super::Pod;
use crate::edit::Path;
use crate::engine::Engine;
use crate::finding::Found;

/// The config that the manager is to copy to where the engine reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Its volume, without a name.
    pub(crate) volume: Value,
    /// Where it is copied to.
    pub(crate) stage: &'static str,
    /// Mounts that it stands for, by their path.
    pub(crate) replaced: Vec<String>,
}

pub(super) fn find(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    engine: Option<Engine>,
    found: &mut Vec<Found>,
) -> Option<Config> {
    let field = format!("{at}.volumeMounts");
    let Some(engine) = engine else {
        found.push(Found::note(
            field,
            "it is not known which engine this is, so its config is not watched",
            "Use an official image, or name the container elasticsearch or opensearch",
        ));
        return None;
    };
    let mounts = mounts(container);
    let whole = mounts.iter().find(|mount| mount.path == engine.config && mount.file.is_none());
    if let Some(volume) = whole.and_then(|mount| volume(pod.spec, &mount.volume)) {
        found.push(Found::error(
            field,
            format!(
                "{} is a mount of {}, which the engine cannot write to",
                engine.config, volume.1
            ),
            "Mount its files one by one (subPath), or leave the mount out and give --config",
        ));
        return None;
    }
    let yml = format!("{}/{}.yml", engine.config, engine.name);
    let main = mounts.iter().find(|mount| mount.path == yml);
    let from_mounts = main.and_then(|main| volume(pod.spec, &main.volume));
    let source = match (&pod.options.config, from_mounts) {
        (Some(chosen), _) => chosen.volume(),
        (None, Some((source, _))) => source,
        (None, None) => {
            found.push(Found::note(
                field,
                format!("no Secret or ConfigMap is mounted at {yml}, so the config is not watched"),
                "If there is one, name it: --config secret/NAME or --config configmap/NAME",
            ));
            return None;
        }
    };
    let replaced = replaced(&mounts, main, &engine, at, found);
    others(pod.spec, &mounts, &replaced, &engine, at, found);
    Some(Config { volume: source, stage: engine.config, replaced })
}

/// The mounts of single files of the volume with the yml: the whole volume is copied instead.
fn replaced(
    mounts: &[Mount],
    main: Option<&Mount>,
    engine: &Engine,
    at: &Path,
    found: &mut Vec<Found>,
) -> Vec<String> {
    let Some(main) = main else { return Vec::new() };
    let mut paths = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.volume == main.volume) {
        let Some(name) = mount.name_in(engine.config) else { continue };
        if mount.file.as_deref() != Some(name) {
            found.push(Found::error(
                format!("{at}.volumeMounts[mountPath={}].subPath", mount.path),
                format!("the file has another name there than {name}; it is copied under its own"),
                format!("Rename it to {name} in its Secret or ConfigMap"),
            ));
        }
        paths.push(mount.path.clone());
    }
    paths
}

/// Says which other files stay mounted by `subPath`.
fn others(
    spec: &Value,
    mounts: &[Mount],
    replaced: &[String],
    engine: &Engine,
    at: &Path,
    found: &mut Vec<Found>,
) {
    for path in below(spec, mounts, engine.config).filter(|path| !replaced.contains(path)) {
        found.push(Found::note(
            format!("{at}.volumeMounts[mountPath={path}]"),
            "it stays mounted by subPath: a change of it does not arrive in a living pod",
            "Move the file to the Secret or ConfigMap of the engine's yml",
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
        .map(|mount| mount.path.clone())
}

fn mounts(container: &Value) -> Vec<Mount> {
    container["volumeMounts"].as_array().into_iter().flatten().map(Mount::of).collect()
}

/// A volume that is a Secret or a ConfigMap: its source, and in words.
fn volume(spec: &Value, name: &str) -> Option<(Value, String)> {
    let all = spec["volumes"].as_array()?;
    let mut volume = all.iter().find(|volume| volume["name"].as_str() == Some(name))?.clone();
    let words =
        match (volume["secret"]["secretName"].as_str(), volume["configMap"]["name"].as_str()) {
            (Some(secret), _) => format!("the Secret {secret}"),
            (None, Some(map)) => format!("the ConfigMap {map}"),
            (None, None) => return None,
        };
    volume.as_object_mut()?.remove("name");
    Some((volume, words))
}

struct Mount {
    volume: String,
    path: String,
    /// Its `subPath`.
    file: Option<String>,
}

impl Mount {
    fn of(mount: &Value) -> Self {
        let text = |field: &str| mount[field].as_str().map(str::to_owned);
        Self {
            volume: text("name").unwrap_or_default(),
            path: text("mountPath").unwrap_or_default(),
            file: text("subPath"),
        }
    }

    /// Its name in this directory.
    fn name_in(&self, directory: &str) -> Option<&str> {
        let name = self.path.strip_prefix(directory)?.strip_prefix('/')?;
        (!name.contains('/')).then_some(name)
    }
}
