//! Makes the parts of a manager, and checks the paths of its settings. All that may fail before there
//! is an engine is here.
//!
//! A mistake at the installation is said at once: the manager ends. Later, when the pod has run
//! before, a fault of the API is no reason to keep the engine down, and without a manager nobody
//! could start it: the fault is reported and tried again.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, io, thread};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::config_watch::{ConfigSettings, ConfigWatch};
use crate::errors::Errors;
use crate::http::{HttpSettings, KeptPair, Limits, Server};
use crate::process::{self, KeptListener, Signals, TempDir};
use crate::settings::Settings;
use crate::supervisor::{Journal, Prober, Serving, SupervisorParts};
use crate::variables::VariablesFile;
use crate::worker::Worker;

/// How long the first access to a volume may take.
const VOLUME_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the parts are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The container was started.
    Start,
    /// A check whether the parts can be made; every fault is an error.
    Rehearsal,
    /// The engine runs already: a fault is an error only if nothing works without that part.
    TakeOver,
}

/// The parts of a manager.
pub(super) struct Parts {
    pub(super) signals: Signals,
    pub(super) supervisor: SupervisorParts,
    pub(super) server: Option<Server>,
    pub(super) kept_pair: Option<KeptPair>,
}

/// Makes all parts. Call it in the runtime.
pub(super) async fn parts(
    settings: &Settings,
    occasion: Occasion,
    listener: KeptListener,
) -> Result<Parts, Vec<String>> {
    let cannot = |what: &str, error: io::Error| vec![format!("cannot {what}: {error}")];
    process::become_subreaper().map_err(|error| cannot("adopt orphans", error))?;
    let errors = Errors::default();
    let (journal, is_first_start) =
        open_journal(settings.state_dir.as_deref(), occasion, &errors).await?;
    let config = if settings.config.dirs.is_empty() {
        None
    } else {
        Some(watch_config(settings.config.clone(), occasion, &errors).await?)
    };
    let temp_dir = match settings.tmp_dir.as_deref() {
        // Not the thread that reads the config: a directory that hangs would keep it from that.
        Some(parent) => Some((Arc::new(TempDir::new(parent)), worker("temp dir", &errors)?)),
        None => None,
    };
    let variables = match settings.environment.clone() {
        Some(path) => Some(Arc::new(VariablesFile::start(path, worker("variables", &errors)?))),
        None => None,
    };
    let kept_pair = keep_pair(settings, &errors).await?;
    let server = if settings.policy.api {
        let http = settings.http.clone();
        Some(api(http, is_first_start, &errors, listener.clone(), kept_pair.clone()).await?)
    } else {
        None
    };
    let prober = settings.ready.clone().map(|probe| Prober::start(probe, &errors)).transpose();
    let prober = prober.map_err(|error| vec![error.to_string()])?.map(Arc::new);
    let reader = if settings.policy.api {
        Some(worker("processes", &errors)?)
    } else {
        // Bare, the manager also starts where no thread can be made.
        worker("processes", &errors).ok()
    };
    // Only a request asks for an upgrade.
    let opener = if settings.policy.api { Some(worker("program", &errors)?) } else { None };
    // Last: what is received before something else fails would be lost.
    let signals = Signals::install().map_err(|error| cannot("receive signals", error))?;
    let supervisor = SupervisorParts {
        command: settings.command.clone(),
        policy: settings.policy.clone(),
        prober,
        config,
        reader,
        opener,
        temp_dir,
        variables,
        journal,
        pod: settings.http.pod.clone(),
        errors,
        lines_lost: watch::channel(0).1,
        log: None,
        program: None,
        listener,
        serving: Arc::new(watch::Sender::new(Serving::Open)),
        hand_over: None,
    };
    Ok(Parts { signals, supervisor, server, kept_pair })
}

/// Makes a thread, which is possible now: the engine has none yet.
fn worker(name: &'static str, errors: &Errors) -> Result<Worker, Vec<String>> {
    Worker::start(name, errors).map_err(|error| vec![error.to_string()])
}

/// The journal with a thread of its own, which shares no open files with others; and true if this
/// is the first start.
async fn open_journal(
    state_dir: Option<&Path>,
    occasion: Occasion,
    errors: &Errors,
) -> Result<(Option<(Journal, Worker)>, bool), Vec<String>> {
    let Some(state_dir) = state_dir else { return Ok((None, true)) };
    let (journal, worker) = (Journal::new(state_dir), worker("journal", errors)?);
    if let Ok(Err(error)) = worker.run(process::own_descriptors).await {
        tracing::warn!(
            %error,
            "files of the state directory are open in all threads: if the disk hangs, a start may \
             hang, too"
        );
    }
    let is_first_start = match occasion {
        Occasion::Start => is_first_start(&journal, &worker).await?,
        Occasion::Rehearsal => {
            is_first_start(&journal, &worker).await?;
            true
        }
        // If it cannot be used now, stops are refused until it can.
        Occasion::TakeOver => false,
    };
    Ok((Some((journal, worker)), is_first_start))
}

/// Starts to follow the config. One thread reads and stages it, another keeps generations.
async fn watch_config(
    settings: ConfigSettings,
    occasion: Occasion,
    errors: &Errors,
) -> Result<Arc<ConfigWatch>, Vec<String>> {
    let dirs = settings.dirs.clone();
    let (staging, keeper) = (worker("staging", errors)?, worker("kept configs", errors)?);
    // It keeps configs only beside a journal, whose thread has warned if this is not possible.
    let _ = keeper.run(process::own_descriptors).await;
    let watch = ConfigWatch::start(settings, staging, keeper, errors.clone());
    if occasion == Occasion::TakeOver {
        // Another attempt would wait for the same volume, and this manager must not end.
        return Ok(Arc::new(watch.await));
    }
    match timeout(VOLUME_TIMEOUT, watch).await {
        Ok(watch) => Ok(Arc::new(watch)),
        Err(_) => {
            let dirs: Vec<_> = dirs.iter().map(|dir| dir.path.display().to_string()).collect();
            Err(vec![format!(
                "--config {} did not answer within {VOLUME_TIMEOUT:?}: repair the volume",
                dirs.join(", ")
            )])
        }
    }
}

/// True if no manager of this pod has run before: there is no journal.
///
/// # Errors
/// The state directory cannot be used.
async fn is_first_start(journal: &Journal, worker: &Worker) -> Result<bool, Vec<String>> {
    let checked = journal.clone();
    match timeout(VOLUME_TIMEOUT, worker.run(move || checked.check())).await {
        Ok(Ok(Ok(has_journal))) => Ok(!has_journal),
        Ok(Ok(Err(problem))) => Err(vec![problem]),
        // The supervisor takes over: a disk that hangs must not keep the engine down.
        Ok(Err(_)) | Err(_) => Ok(false),
    }
}

/// The store of the served certificate, if there is one: beside the journal, with a thread of its own.
async fn keep_pair(settings: &Settings, errors: &Errors) -> Result<Option<KeptPair>, Vec<String>> {
    let (Some(state_dir), Some(_)) = (&settings.state_dir, &settings.http.tls_cert) else {
        return Ok(None);
    };
    let keeper = worker("kept certificate", errors)?;
    // The journal's thread has warned if this is not possible.
    let _ = keeper.run(process::own_descriptors).await;
    Ok(Some(KeptPair::new(state_dir, keeper)))
}

/// Binds the API, as far as it can be served.
///
/// # Errors
/// At the first start, all that cannot be served.
async fn api(
    settings: HttpSettings,
    is_first_start: bool,
    errors: &Errors,
    kept: KeptListener,
    kept_pair: Option<KeptPair>,
) -> Result<Server, Vec<String>> {
    let server = Server::bind(settings, Limits::default(), errors, kept, kept_pair).await?;
    let faults = server.faults();
    if is_first_start && !faults.is_empty() { Err(faults) } else { Ok(server) }
}

// Paths of the settings as they are on disk: which directories must be apart, also behind links and `..`, and
// whether the path of the socket is short enough.

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
    match thread::Builder::new().name("paths".to_owned()).spawn(look) {
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
