//! `stayput warm`: makes an archive of the engine's classes while an image is built, or before a pod's
//! first start, so that a server JVM maps them instead of loading and linking each anew.
//!
//! * [`plan`]: pure: paths, texts and arguments.
//! * [`java`]: pure: the program in the place of `java`.
//! * [`engine`]: runs the engine once.
//! * [`fits`]: the JVM and the jars that an archive is for.
//! * [`once`]: in a pod.
//! * [`until`]: limits of all waiting.

mod engine;
mod fits;
mod java;
mod once;
mod plan;
mod until;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::process::{self, Archive, LaunchError};
use engine::Engine;
pub use once::once;
use until::Until;

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
        write(&warm.options, &plan::option_file(&warm.archive))?;
        prove(warm, size, &until)
    })
}

fn all_or_nothing<T>(
    warm: &Warm,
    work: impl FnOnce(&Path) -> Result<T, WarmError>,
) -> Result<T, WarmError> {
    plan::check(warm)?;
    let java_home = java_home(warm)?;
    if !process::is_pid_1() {
        process::become_subreaper()?;
    }
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
    let home = plan::java_home(warm.java_home.clone(), |name| std::env::var_os(name));
    home.ok_or(WarmError::NoJava)
}

/// Makes the archive. Returns its size in bytes.
fn make(warm: &Warm, java_home: &Path, until: &Until) -> Result<u64, WarmError> {
    let work = Work::new()?;
    let bin = work.0.join("java/bin");
    fs::create_dir_all(&bin)?;
    let program = bin.join("java");
    write(&program, &java::program(java_home, &warm.archive, &work.0))?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let instead = work.0.join("java").into_os_string();
    let variables = plan::JAVA_HOMES.map(|name| (name.into(), instead.clone()));
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
    let archive = engine.archive();
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
    variables: Vec<(OsString, OsString)>,
    until: &Until,
) -> Result<Engine, WarmError> {
    // Both are bound at the same time, so that they differ.
    let listeners = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (http, transport) = (listeners.0.local_addr()?.port(), listeners.1.local_addr()?.port());
    drop(listeners);
    let arguments = plan::arguments(&work.0, http, transport);
    let command = warm.command.iter().cloned().chain(arguments).collect();
    Ok(Engine::start(command, variables, http, until.clone())?)
}

fn write(path: &Path, text: &str) -> Result<(), WarmError> {
    fs::write(path, text).map_err(|source| WarmError::File { path: path.to_owned(), source })
}

fn remove(warm: &Warm) -> Result<(), WarmError> {
    for path in [&warm.archive, &warm.options] {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(WarmError::File { path: path.clone(), source });
            }
            Ok(()) | Err(_) => {}
        }
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
