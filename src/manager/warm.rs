//! `stayput warm`: makes an archive of the engine's classes while an image is built, or before a pod's
//! first start, so that a server JVM maps them instead of loading and linking each anew.

mod engine;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::files;
use crate::process::{self, Archive, EnvironmentChanges, LaunchError};
use engine::Engine;

/// Files, JVM and command for making an archive.
#[derive(Debug)]
pub struct Warm {
    /// The archive, at the path that it has in the engine's container.
    pub archive: PathBuf,
    /// A file of the engine's `jvm.options.d`.
    pub options: PathBuf,
    /// The engine's JVM, unless the variables of the engine's script name it.
    pub java_home: Option<PathBuf>,
    /// The engine's command, as for `run`.
    pub command: Vec<OsString>,
}

/// Result of making an archive.
#[derive(Debug)]
pub struct Warmed {
    /// The archive's size in bytes.
    pub size: u64,
    /// Time from the engine's launch to its first connection, with the archive.
    pub took: Duration,
    /// True if the archive fits only where the engine's `lib` has this order of files.
    pub order_varies: bool,
}

/// Reason why there is no archive.
#[derive(Debug, Error)]
pub enum WarmError {
    #[error("{0:?} must be an absolute path without white space and colons")]
    Path(PathBuf),
    #[error("{0:?} must end in .options: the engine reads no other file of its jvm.options.d")]
    NoOptionFile(PathBuf),
    #[error("which JVM the engine uses is not known; give --java-home DIR, or set JAVA_HOME")]
    NoJava,
    #[error("{path:?}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot set up: {0}")]
    SetUp(#[from] io::Error),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("the engine ended with code {0} before it accepted connections; its output is above")]
    Ended(i32),
    #[error("the engine did not {what} within {} s; its output is above", waited.as_secs())]
    Late { what: &'static str, waited: Duration },
    #[error("signal {0} was received; the engine's processes were ended, and nothing is left")]
    Signal(u8),
    #[error(
        "no archive was written: its server JVM was not started by the java of {0:?} with a class path \
         (Elasticsearch 8 and later start it as a patched module, which JVMs keep in no archive), or \
         the JVM says above why"
    )]
    NotWritten(PathBuf),
    #[error("the server JVM was not told of the archive: the engine does not read {0:?}")]
    NotRead(PathBuf),
    #[error("the server JVM ignores the archive: it is another JVM, or another class path")]
    Ignored,
}

/// Runs the engine twice: once to make the archive, and once to see that it is used. If that fails,
/// neither file is left.
pub fn warm(warm: &Warm) -> Result<Warmed, WarmError> {
    let until = Until::new(None)?;
    all_or_nothing(warm, |java_home| {
        let size = make(warm, java_home, &until)?;
        write(&warm.options, &option_file(&warm.archive))?;
        prove(warm, size, &until)
    })
}

fn all_or_nothing<T>(
    warm: &Warm,
    work: impl FnOnce(&Path) -> Result<T, WarmError>,
) -> Result<T, WarmError> {
    check(warm)?;
    let java_home = java_home(warm)?;
    process::become_subreaper()?;
    // With an old one, the JVM cannot make another.
    remove(warm)?;
    let made = work(&java_home);
    if made.is_err() {
        // What failed first is what matters.
        let _ = remove(warm);
    }
    made
}

fn java_home(warm: &Warm) -> Result<PathBuf, WarmError> {
    let home = find_java_home(warm.java_home.clone(), |name| std::env::var_os(name));
    home.ok_or(WarmError::NoJava)
}

/// Makes the archive. Returns its size in bytes.
fn make(warm: &Warm, java_home: &Path, until: &Until) -> Result<u64, WarmError> {
    let work = Work::new()?;
    let bin = work.0.join("java/bin");
    fs::create_dir_all(&bin)?;
    let program = bin.join("java");
    write(&program, &engine::program(java_home, &warm.archive, &work.0))?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let instead = work.0.join("java").into_os_string();
    let variables = JAVA_HOMES.map(|name| (name.into(), Some(instead.clone())));
    let mut engine = start(warm, &work, variables.into(), until)?;
    engine.until_serving()?;
    engine.use_once();
    engine.stop()?;
    until.signalled()?;
    match fs::metadata(&warm.archive) {
        Ok(archive) => Ok(archive.len()),
        Err(_) => Err(WarmError::NotWritten(java_home.to_owned())),
    }
}

/// Starts the engine as its container will, to see that the archive is used.
fn prove(warm: &Warm, size: u64, until: &Until) -> Result<Warmed, WarmError> {
    let work = Work::new()?;
    let mut engine = start(warm, &work, Vec::new(), until)?;
    let took = engine.until_serving()?;
    let archive = engine.archive()?;
    engine.stop()?;
    match archive {
        Some(Archive { is_used: true, order_varies, .. }) => {
            Ok(Warmed { size, took, order_varies })
        }
        Some(_) => Err(WarmError::Ignored),
        None => Err(WarmError::NotRead(warm.options.clone())),
    }
}

fn start(
    warm: &Warm,
    work: &Work,
    variables: EnvironmentChanges,
    until: &Until,
) -> Result<Engine, WarmError> {
    // Both are bound at the same time, so that they differ.
    let listeners = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (http, transport) = (listeners.0.local_addr()?.port(), listeners.1.local_addr()?.port());
    drop(listeners);
    let arguments = arguments(&work.0, http, transport);
    let command = warm.command.iter().cloned().chain(arguments).collect();
    Ok(Engine::start(command, variables, http, until.clone())?)
}

fn write(path: &Path, text: &str) -> Result<(), WarmError> {
    fs::write(path, text).map_err(|source| WarmError::File { path: path.to_owned(), source })
}

fn remove(warm: &Warm) -> Result<(), WarmError> {
    for path in [&warm.archive, &warm.options] {
        files::remove(path).map_err(|source| WarmError::File { path: path.clone(), source })?;
    }
    Ok(())
}

/// A directory for one run of the engine, removed afterwards.
struct Work(PathBuf);

impl Work {
    fn new() -> Result<Self, WarmError> {
        let path = std::env::temp_dir().join(format!("stayput-warm.{}", process::own_pid()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|source| WarmError::File { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // It is a temporary directory: what cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Variables with which the engines' scripts find their JVM, in the scripts' order.
const JAVA_HOMES: [&str; 3] = ["OPENSEARCH_JAVA_HOME", "ES_JAVA_HOME", "JAVA_HOME"];

/// Checks the requested paths.
fn check(warm: &Warm) -> Result<(), WarmError> {
    for path in [&warm.archive, &warm.options] {
        // The engine changes its directory, and a path in an option file cannot be quoted.
        let text = path.to_str().filter(|text| text.starts_with('/'));
        if text.is_none_or(|text| text.contains(|c: char| c.is_whitespace() || c == ':')) {
            return Err(WarmError::Path(path.clone()));
        }
    }
    match warm.options.extension() {
        Some(extension) if extension == "options" => Ok(()),
        Some(_) | None => Err(WarmError::NoOptionFile(warm.options.clone())),
    }
}

/// The JVM that the engine's script will start.
fn find_java_home(
    given: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    given.or_else(|| JAVA_HOMES.iter().find_map(set).map(PathBuf::from))
}

/// The option file: JVMs that know no such archives do not get the option.
fn option_file(archive: &Path) -> String {
    format!(
        "# Written by `stayput warm`: classes that the server JVM maps instead of loading them.\n\
         # A JVM that they do not fit ignores them; the log of `stayput run` shows that.\n\
         13-:-XX:SharedArchiveFile={}\n",
        archive.display()
    )
}

/// Arguments of an engine that runs alone, on throwaway data in `work`.
fn arguments(work: &Path, http: u16, transport: u16) -> Vec<OsString> {
    [
        format!("path.data={}", work.join("data").display()),
        format!("path.logs={}", work.join("logs").display()),
        "network.host=127.0.0.1".to_owned(),
        format!("http.port={http}"),
        format!("transport.port={transport}"),
        "discovery.type=single-node".to_owned(),
    ]
    .map(|setting| format!("-E{setting}").into())
    .into()
}

/// Deadline and signal that end all waiting.
#[derive(Debug, Clone)]
struct Until {
    deadline: Option<Instant>,
    /// The signal that was received; 0 before.
    signal: Arc<AtomicUsize>,
}

impl Until {
    /// Receives TERM and INT from now on. As PID 1, a process without handlers does not end by them:
    /// the kubelet would wait for the pod's whole grace.
    fn new(deadline: Option<Instant>) -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for (number, shown) in [(libc::SIGTERM, 15), (libc::SIGINT, 2)] {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), shown)?;
        }
        Ok(Self { deadline, signal })
    }

    /// Limits with this deadline, and without a signal.
    #[cfg(test)]
    fn of(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), signal: Arc::default() }
    }

    /// These limits, and this instant at the latest.
    fn at_most(&self, limit: Instant) -> Self {
        let deadline = self.deadline.map_or(limit, |deadline| deadline.min(limit));
        Self { deadline: Some(deadline), signal: Arc::clone(&self.signal) }
    }

    /// The time that is left, and `limit` at most; `None` if all waiting is over.
    fn left(&self, limit: Duration) -> Option<Duration> {
        if self.signalled().is_err() {
            return None;
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(Some(limit), |left| (!left.is_zero()).then(|| left.min(limit)))
    }

    /// # Errors
    /// A signal was received.
    fn signalled(&self) -> Result<(), WarmError> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(WarmError::Signal(u8::try_from(signal).unwrap_or(u8::MAX))),
        }
    }
}

/// Makes the archive within this time, if that was not tried before; returns its size if it was made now.
///
/// Only one attempt is made for each JVM and each set of the engine's jars: an attempt that takes
/// too much memory may end the whole container, and the kubelet would repeat it for ever. The
/// volume stays when the pod's containers are made again, as after a restart of its machine, and
/// these may have another image by then. The engine is not started a second time to see whether the
/// archive is used: the pod waits, and the manager looks at each start.
pub fn once(warm: &Warm, limit: Duration) -> Result<Option<u64>, WarmError> {
    check(warm)?;
    let until = Until::new(Some(Instant::now() + limit))?;
    if !is_first(warm, &engine::made_for(&java_home(warm)?, &warm.options)?)? {
        return Ok(None);
    }
    all_or_nothing(warm, |java_home| {
        let size = make(warm, java_home, &until)?;
        write(&warm.options, &option_file(&warm.archive))?;
        Ok(Some(size))
    })
}

/// True for the first attempt for `made_for` in the archive's directory. Records the attempt.
fn is_first(warm: &Warm, made_for: &str) -> Result<bool, WarmError> {
    let mut name = warm.archive.clone().into_os_string();
    name.push(".tried");
    let path = PathBuf::from(name);
    match fs::read(&path) {
        Ok(tried) if tried == made_for.as_bytes() => return Ok(false),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(WarmError::File { path, source });
        }
        Ok(_) | Err(_) => {}
    }
    write(&path, made_for)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves STOP-25
    fn only_paths_that_an_option_file_can_hold_are_accepted() {
        for (archive, options, error) in [
            ("/a/warm.jsa", "/c/jvm.options.d/warm.options", None),
            ("warm.jsa", "/c/warm.options", Some("warm.jsa")),
            ("/a b/warm.jsa", "/c/warm.options", Some("/a b/warm.jsa")),
            ("/a:b/warm.jsa", "/c/warm.options", Some("/a:b/warm.jsa")),
            ("/a/warm.jsa", "c/warm.options", Some("c/warm.options")),
            ("/a/warm.jsa", "/c/warm", Some(".options")),
        ] {
            let warm = Warm {
                archive: archive.into(),
                options: options.into(),
                java_home: None,
                command: Vec::new(),
            };
            let checked = check(&warm).map_err(|error| error.to_string());
            match error {
                None => assert_eq!(checked, Ok(())),
                Some(part) => assert!(checked.unwrap_err().contains(part), "{archive} {options}"),
            }
        }
    }

    #[test]
    fn the_jvm_is_the_one_that_the_script_takes() {
        for (given, set, home) in [
            (None, vec![("JAVA_HOME", "/j"), ("OPENSEARCH_JAVA_HOME", "/o")], Some("/o")),
            (None, vec![("JAVA_HOME", "/j"), ("ES_JAVA_HOME", "")], Some("/j")),
            (Some("/g"), vec![("JAVA_HOME", "/j")], Some("/g")),
            (None, vec![], None),
        ] {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            assert_eq!(find_java_home(given.map(PathBuf::from), variable), home.map(PathBuf::from));
        }
    }

    #[test]
    fn jvms_without_such_archives_do_not_get_the_option() {
        let options = option_file(Path::new("/a.jsa"));
        let lines: Vec<&str> = options.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["13-:-XX:SharedArchiveFile=/a.jsa"]);
    }
}
