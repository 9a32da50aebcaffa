//! A config that an init container copies into a volume of the pod, as in the chart of the OpenSearch
//! project.

use serde_json::Value;

use super::command::words;
use super::config::{Mount, mounts, volume};
use super::shell::script_at;
use crate::paths::{is_in, plain};

/// Source of the files of a volume.
#[derive(Debug)]
pub(super) struct CopiedConfig {
    /// The volume with the Secret or ConfigMap, without its name.
    pub(super) source: Value,
    /// The Secret or ConfigMap, in words.
    pub(super) shown: String,
    /// The init container.
    pub(super) by: String,
    /// True if the init container copies the files unchanged and does nothing else.
    pub(super) as_it_is: bool,
}

/// The Secret or ConfigMap from which an init container fills a volume, if it is only one.
pub(super) fn source(spec: &Value, filled: &str) -> Option<CopiedConfig> {
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
