//! Secrets and ConfigMaps that the engine's config is made from, found from the pod's template: those that are mounted
//! at the directories that the manager watches. And those that the engine reads and nobody watches.

use serde_json::Value;

use crate::content::Source;
use crate::template::{container, elements};
use crate::uses::{Part, SERVICE_ACCOUNT, kind, parts, volume};

/// The engine's config as a pod mounts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedConfig {
    /// The objects; of two with the same file the later one counts.
    pub parts: Vec<MountedPart>,
    /// The globs of files that the engine reloads by itself.
    pub live: Vec<String>,
}

/// One Secret or ConfigMap of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedPart {
    /// The object.
    pub source: Source,
    /// Keys and their paths; empty: every key under its own name.
    pub items: Vec<(String, String)>,
    /// Name of the manager's config directory; empty for one without a name.
    pub directory: String,
    /// True if the files of an absent object or key are left out.
    pub optional: bool,
}

/// Why the objects cannot be found. The message follows the name of the pod, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigNotFound {
    /// Nothing says which directory is watched.
    #[error(
        "has neither --config nor STAYPUT_CONFIG in its spec: add one, or name the objects in \
         spec.config.sources"
    )]
    NoDirectory,
    /// Only the kubelet knows the value.
    #[error(
        "takes {0} from elsewhere, so that the directory is not in its spec: write the value there, or \
         name the objects in spec.config.sources"
    )]
    NotWritten(String),
    /// The working directory of the container is not known.
    #[error("watches {0}, which is no absolute path: write one that begins with a slash")]
    Relative(String),
    /// A directory of the image.
    #[error(
        "watches {0}, where no volume is mounted: mount the Secret or ConfigMap there, or name the \
         objects in spec.config.sources"
    )]
    NotMounted(String),
    /// Single files or a part of a volume, which the kubelet never renews.
    #[error(
        "mounts parts of volumes by subPath at {0}, which never change in a running container: mount \
         the volume as a whole at a directory of its own, and use --stage to copy it there"
    )]
    SubPath(String),
    /// The volume is filled by somebody else.
    #[error(
        "watches {directory}, whose volume is of the kind {kind}: what is in there is in no Secret or \
         ConfigMap that can be found; let --config be the directory where these are mounted and --stage \
         copy them, or name the objects in spec.config.sources"
    )]
    OtherVolume {
        /// The directory.
        directory: String,
        /// Kind of the volume, such as `emptyDir`.
        kind: String,
    },
    /// A token or a field of the pod beside the config.
    #[error(
        "watches {directory}, in which {source_kind} is mounted, too: mount that at another directory"
    )]
    OtherSource {
        /// The directory.
        directory: String,
        /// Kind of the source, such as `serviceAccountToken`.
        source_kind: String,
    },
    /// A volume inside another one.
    #[error(
        "watches {directory}, in which another volume is mounted at {inner}: make one projected volume \
         of them, or name the objects in spec.config.sources"
    )]
    Nested {
        /// The directory.
        directory: String,
        /// Path where the other volume is mounted.
        inner: String,
    },
}

impl From<NotWritten> for ConfigNotFound {
    fn from(error: NotWritten) -> Self {
        Self::NotWritten(error.option)
    }
}

/// The config of the engine in this container.
///
/// # Errors
/// The objects are not in the template, or not only they.
pub fn mounted_config(
    template: &Value,
    engine_container: &str,
) -> Result<MountedConfig, ConfigNotFound> {
    let container = container(template, engine_container).ok_or(ConfigNotFound::NoDirectory)?;
    let directories = manager_option(container, "config")?;
    if directories.is_empty() {
        return Err(ConfigNotFound::NoDirectory);
    }
    let live = manager_option(container, "live")?;
    let mut parts = Vec::new();
    for directory in &directories {
        let (name, path) = named_directory(directory);
        parts.extend(of_directory(template, container, name, path)?);
    }
    Ok(MountedConfig { parts, live })
}

/// Name and path of a config directory, as the manager reads it: in a path, a `=` comes after a slash.
fn named_directory(directory: &str) -> (&str, &str) {
    match directory.split_once('=') {
        Some((name, path)) if !name.contains('/') => (name, path),
        Some(_) | None => ("", directory),
    }
}

fn of_directory(
    template: &Value,
    container: &Value,
    name: &str,
    path: &str,
) -> Result<Vec<MountedPart>, ConfigNotFound> {
    let directory = path.to_owned();
    if !path.starts_with('/') {
        return Err(ConfigNotFound::Relative(directory));
    }
    let mounts = || elements(&container["volumeMounts"]);
    let below = |mount: &&Value| components(mount_path(mount)).starts_with(&components(path));
    if mounts().filter(below).any(is_part_of_volume) {
        return Err(ConfigNotFound::SubPath(directory));
    }
    let is_here = |mount: &&Value| components(mount_path(mount)) == components(path);
    let Some(mount) = mounts().find(is_here) else {
        return Err(ConfigNotFound::NotMounted(directory));
    };
    if let Some(inner) = mounts().filter(below).find(|mount| !is_here(mount)) {
        let inner = mount_path(inner).to_owned();
        return Err(ConfigNotFound::Nested { directory, inner });
    }
    let Some(volume) = volume(template, &mount["name"]) else {
        return Err(ConfigNotFound::NotMounted(directory));
    };
    if let Some(source_kind) = other_source(volume) {
        return Err(ConfigNotFound::OtherSource { directory, source_kind });
    }
    let parts = parts(volume);
    if parts.is_empty() {
        return Err(ConfigNotFound::OtherVolume { directory, kind: kind(volume).to_owned() });
    }
    Ok(parts
        .into_iter()
        .map(|part| MountedPart {
            source: part.source,
            items: part.items.unwrap_or_default(),
            directory: name.to_owned(),
            optional: part.optional,
        })
        .collect())
}

/// Kind of a source in a projected volume that is no Secret and no ConfigMap, if there is one.
fn other_source(volume: &Value) -> Option<String> {
    let sources = elements(&volume["projected"]["sources"]);
    let kinds = sources.filter_map(Value::as_object).flatten();
    let mut others = kinds.filter(|(kind, value)| {
        !value.is_null() && !["secret", "configMap"].contains(&kind.as_str())
    });
    others.next().map(|(kind, _)| kind.clone())
}

fn is_part_of_volume(mount: &Value) -> bool {
    let is_set = |field: &str| mount[field].as_str().is_some_and(|part| !part.is_empty());
    is_set("subPath") || is_set("subPathExpr")
}

fn mount_path(mount: &Value) -> &str {
    mount["mountPath"].as_str().unwrap_or_default()
}

/// The names in a path: `/config/` and `/config` are the same.
pub(crate) fn components(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

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
    let container = container(template, engine_container);
    container.and_then(|container| of_container(template, container).ok()).unwrap_or_default()
}

fn of_container(template: &Value, container: &Value) -> Result<Vec<Unwatched>, NotWritten> {
    let directories = manager_option(container, "config")?;
    if directories.is_empty() {
        return Ok(vec![]);
    }
    let watched: Vec<&str> = directories.iter().map(|one| named_directory(one).1).collect();
    let mut own = Vec::new();
    for option in OWN {
        own.extend(manager_option(container, option)?);
    }
    let is_below =
        |path: &str, directory: &str| components(path).starts_with(&components(directory));
    let mounts = || elements(&container["volumeMounts"]);
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

/// An option whose value the template does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotWritten {
    /// The argument or variable.
    pub option: String,
}

/// All values of an option that may be repeated, such as `config`; those of the command line win
/// over the variable. Empty if the template says nothing about it.
///
/// # Errors
/// The value is not in the template.
pub fn manager_option(container: &Value, option: &str) -> Result<Vec<String>, NotWritten> {
    let argument = format!("--{option}");
    let given = arguments(container, &argument);
    if !given.is_empty() {
        return written(&argument, given);
    }
    let name = format!("STAYPUT_{}", option.to_ascii_uppercase().replace('-', "_"));
    let variables = container["env"].as_array().map_or(&[][..], Vec::as_slice).iter();
    // Of two with one name the last counts.
    let Some(variable) = variables.rev().find(|each| each["name"] == name.as_str()) else {
        return Ok(vec![]);
    };
    match variable["value"].as_str() {
        Some(list) => {
            let items = list.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty());
            written(&name, items.map(str::to_owned).collect())
        }
        None if variable["valueFrom"].is_null() => Ok(vec![]),
        None => Err(NotWritten { option: name }),
    }
}

/// Values of this argument between `run` and `--`, where the engine's command begins.
fn arguments(container: &Value, argument: &str) -> Vec<String> {
    let lists = ["command", "args"].map(|list| container[list].as_array());
    let words = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
    let mut own = words.skip_while(|word| *word != "run").take_while(|word| *word != "--");
    let mut found = Vec::new();
    while let Some(word) = own.next() {
        let value = match word.strip_prefix(argument) {
            Some("") => own.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        found.extend(value.map(str::to_owned));
    }
    found
}

/// Fails if a value has `$(NAME)`, where the kubelet puts the value of a variable.
fn written(option: &str, values: Vec<String>) -> Result<Vec<String>, NotWritten> {
    if values.iter().any(|value| value.contains("$(")) {
        Err(NotWritten { option: option.to_owned() })
    } else {
        Ok(values)
    }
}
