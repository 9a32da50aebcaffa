//! Paths of the settings as they are on disk: which directories must be apart, also behind links and `..`, and
//! whether the path of the socket is short enough.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::settings::Settings;

/// How long the disks may take to answer. A volume that hangs is no reason not to start.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest path of a unix socket, in bytes: `sun_path` without its last zero.
const LONGEST_SOCKET: usize = 107;

/// Problems with the paths, one sentence each; empty if the disks do not answer in time.
pub(super) fn problems(settings: &Settings) -> Vec<String> {
    let places = Places::of(settings);
    if places.config.is_empty() && places.socket.is_none() {
        return Vec::new();
    }
    let (done, found) = mpsc::channel();
    let look = move || done.send(places.problems());
    match thread::Builder::new().spawn(look) {
        Ok(_) => found.recv_timeout(ANSWER_TIMEOUT).unwrap_or_default(),
        // Who has no thread left is told so by what needs one.
        Err(_) => Vec::new(),
    }
}

/// A directory, and the option that names it.
#[derive(Debug, Clone)]
struct NamedDirectory {
    option: String,
    path: PathBuf,
}

#[derive(Debug, Default)]
struct Places {
    config: Vec<NamedDirectory>,
    staged: Vec<NamedDirectory>,
    /// State and temporary directory, which the manager writes to, too.
    own: Vec<NamedDirectory>,
    socket: Option<PathBuf>,
}

impl Places {
    fn of(settings: &Settings) -> Self {
        let place = |option: String, path: &Path| NamedDirectory { option, path: path.to_owned() };
        let own = |name: &str, path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(place(format!("--{name} {}", path.display()), path))
        };
        let config = &settings.config;
        let staged = |stage: &crate::config_watch::Stage| {
            let (source, target) = (stage.source.display(), stage.target.display());
            place(format!("--stage {source}={target}"), &stage.target)
        };
        let dirs = config.dirs.iter();
        let dirs = dirs.map(|dir| place(format!("--config {}", dir.path.display()), &dir.path));
        Self {
            config: dirs.collect(),
            staged: config.stage.iter().map(staged).collect(),
            own: [own("state-dir", &settings.state_dir), own("tmp-dir", &settings.tmp_dir)]
                .into_iter()
                .flatten()
                .collect(),
            socket: settings.http.socket.clone(),
        }
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for written in self.staged.iter().chain(&self.own) {
            if let Some(config) = overlapping(written, &self.config) {
                problems.push(format!(
                    "{} must be apart from {}: what is written there would change the config",
                    written.option, config.option
                ));
            }
        }
        for own in &self.own {
            if let Some(staged) = overlapping(own, &self.staged) {
                problems.push(format!(
                    "{} must be apart from the target of {}: the config is written there",
                    own.option, staged.option
                ));
            }
        }
        problems.extend(self.socket.as_deref().and_then(why_too_long));
        problems
    }
}

fn overlapping<'a>(
    one: &NamedDirectory,
    others: &'a [NamedDirectory],
) -> Option<&'a NamedDirectory> {
    let path = resolved(&one.path);
    others.iter().find(|other| {
        let other = resolved(&other.path);
        path.starts_with(&other) || other.starts_with(&path)
    })
}

/// The path without links and `..`; components that do not exist are kept as written.
fn resolved(path: &Path) -> PathBuf {
    let mut known = PathBuf::new();
    for component in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        if component == Component::ParentDir {
            known.pop();
        } else {
            known.push(component);
        }
        if let Ok(real) = fs::canonicalize(&known) {
            known = real;
        }
    }
    known
}

fn why_too_long(path: &Path) -> Option<String> {
    let (length, shown) = (path.as_os_str().len(), path.display());
    (length > LONGEST_SOCKET).then(|| {
        format!("--socket {shown} has {length} bytes: a socket's path may have {LONGEST_SOCKET}")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(option: &str, path: PathBuf) -> NamedDirectory {
        NamedDirectory { option: option.to_owned(), path }
    }

    #[test] // proves HOST-1
    fn directories_must_be_apart_whatever_they_are_called() {
        let work = tempfile::tempdir().expect("a directory");
        let at = |name: &str| work.path().join(name);
        fs::create_dir_all(at("config/sub")).expect("a directory");
        fs::create_dir(at("other")).expect("a directory");
        symlink(at("config"), at("link")).expect("a link");
        for (name, is_apart) in [
            ("other", true),
            ("other/not/there", true),
            ("config2", true),
            ("link/../other", true),
            ("config", false),
            ("config/sub", false),
            ("config/not/there", false),
            ("link", false),
            ("link/sub", false),
            ("other/../config", false),
            ("other/../link/state", false),
            ("", false),
        ] {
            let config = vec![place("--config", at("config"))];
            let own = Places {
                config: config.clone(),
                own: vec![place("--state-dir", at(name))],
                ..Places::default()
            };
            assert_eq!(own.problems().is_empty(), is_apart, "{name}: {:?}", own.problems());
            let staged = vec![place("--stage", at(name))];
            let staged = Places { config, staged, ..Places::default() };
            assert_eq!(staged.problems().is_empty(), is_apart, "{name}: {:?}", staged.problems());
        }
        let both = Places {
            staged: vec![place("--stage a=b", at("other"))],
            own: vec![place("--state-dir", at("link/../other/state"))],
            ..Places::default()
        };
        let expected =
            "--state-dir must be apart from the target of --stage a=b: the config is written there";
        assert_eq!(both.problems(), [expected]);
    }

    #[test] // proves HOST-1
    fn a_socket_with_a_path_that_is_too_long_is_refused() {
        let path = |length: usize| Path::new("/").join("s".repeat(length - 1));
        assert_eq!(why_too_long(&path(LONGEST_SOCKET)), None);
        let why = why_too_long(&path(LONGEST_SOCKET + 1)).expect("a problem");
        assert!(why.contains("108 bytes") && why.contains("may have 107"), "{why}");
    }
}
