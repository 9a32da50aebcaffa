//! Binds listener and unix socket, and retries each until it is bound.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use std::{fmt, fs};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::{Mode, SFlag, fstat};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::reload::delay_after;
use super::settings::HttpSettings;
use crate::errors::{ErrorCode, Errors};
use crate::process::KeptListener;
use crate::worker::{NoThread, WorkPanicked, Worker};

/// How long the directory of the socket may take to answer.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(5);

/// Listener and socket, bound or still to be bound.
#[derive(Debug)]
pub(super) struct Binding {
    address: Option<SocketAddr>,
    socket: Option<SocketBinding>,
    kept: KeptListener,
    pub(super) tcp: Option<TcpListener>,
    pub(super) unix: Option<UnixListener>,
    /// Reasons why a listener is not bound yet.
    pub(super) faults: Vec<String>,
}

impl Binding {
    /// Uses the listener that is kept, if one is.
    ///
    /// # Errors
    /// The thread that binds the socket cannot be made.
    pub(super) fn new(
        settings: &HttpSettings,
        kept: KeptListener,
        errors: &Errors,
    ) -> Result<Self, NoThread> {
        let tcp = settings.listen.and_then(|_| kept_listener(&kept).ok().flatten());
        let for_others = !settings.allow_uid.is_empty();
        let socket = settings.socket.clone();
        let socket = socket.map(|path| SocketBinding::new(path, for_others, errors)).transpose()?;
        Ok(Self {
            address: settings.listen.filter(|_| tcp.is_none()),
            socket,
            kept,
            tcp,
            unix: None,
            faults: Vec::new(),
        })
    }

    /// Tries to bind each listener that is not bound yet.
    pub(super) async fn attempt(&mut self) {
        self.faults.clear();
        if let Some(address) = self.address {
            match tcp(address).await {
                Ok(bound) => {
                    self.kept.keep(bound.as_fd());
                    (self.address, self.tcp) = (None, Some(bound));
                }
                Err(fault) => self.faults.push(fault),
            }
        }
        if let Some(socket) = &mut self.socket {
            match socket.attempt().await {
                Ok(bound) => (self.socket, self.unix) = (None, Some(bound)),
                Err(fault) => self.faults.push(fault),
            }
        }
    }

    /// Hands over the bound listeners, and retries until all are bound.
    pub(super) async fn complete(
        mut self,
        errors: Errors,
        tcp: oneshot::Sender<TcpListener>,
        unix: oneshot::Sender<UnixListener>,
    ) {
        let (mut tcp, mut unix) = (Some(tcp), Some(unix));
        let mut failures = 0;
        loop {
            hand_over(&mut self.tcp, &mut tcp);
            hand_over(&mut self.unix, &mut unix);
            if self.faults.is_empty() {
                return errors.resolve(ErrorCode::Api);
            }
            errors.report(ErrorCode::Api, self.faults.join("; "));
            failures += 1;
            sleep(delay_after(failures)).await;
            self.attempt().await;
        }
    }
}

type UnderWay =
    Pin<Box<dyn Future<Output = Result<Result<net::UnixListener, String>, WorkPanicked>> + Send>>;

/// A socket that is not bound yet. A thread binds it: its directory may be on a disk that hangs.
struct SocketBinding {
    path: PathBuf,
    for_others: bool,
    worker: Worker,
    /// An attempt that has taken too long.
    under_way: Option<UnderWay>,
}

impl fmt::Debug for SocketBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketBinding").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SocketBinding {
    fn new(path: PathBuf, for_others: bool, errors: &Errors) -> Result<Self, NoThread> {
        let worker = Worker::start("socket", errors)?;
        Ok(Self { path, for_others, worker, under_way: None })
    }

    async fn attempt(&mut self) -> Result<UnixListener, String> {
        let (path, for_others) = (self.path.clone(), self.for_others);
        let bind = || -> UnderWay { Box::pin(self.worker.run(move || unix(&path, for_others))) };
        let under_way = self.under_way.get_or_insert_with(bind);
        let Ok(bound) = timeout(SOCKET_TIMEOUT, under_way).await else {
            return Err(format!(
                "{} cannot be made a unix socket: its directory does not answer; repair the volume",
                self.path.display()
            ));
        };
        self.under_way = None;
        let bound = bound.map_err(|error| error.to_string())??;
        UnixListener::from_std(bound).map_err(|error| error.to_string())
    }
}

fn kept_listener(kept: &KeptListener) -> io::Result<Option<TcpListener>> {
    let Some(listener) = kept.descriptor()? else { return Ok(None) };
    TcpListener::from_std(listener.into()).map(Some)
}

fn hand_over<T>(bound: &mut Option<T>, receiver: &mut Option<oneshot::Sender<T>>) {
    if let Some(bound) = bound.take()
        && let Some(receiver) = receiver.take()
    {
        // It is there until the server ends.
        let _ = receiver.send(bound);
    }
}

fn address_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another process has it: end that one, or choose another port with --listen"
        }
        ErrorKind::AddrNotAvailable => "this machine does not have the address: correct --listen",
        ErrorKind::PermissionDenied => {
            "ports below 1024 need privileges: choose a higher one with --listen"
        }
        _ => "correct --listen",
    }
}

fn socket_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "its directory does not exist: create it or mount it",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "its directory is not writable: mount a writable volume there"
        }
        ErrorKind::InvalidInput => {
            "it has more than 107 bytes: choose a shorter path with --socket"
        }
        _ => "choose another path with --socket",
    }
}

/// Binds the TCP address.
///
/// # Errors
/// Why it cannot be bound, and what to do.
pub(super) async fn tcp(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = match TcpListener::bind(address).await {
        // A kernel without IPv6: all interfaces are those of IPv4.
        Err(error)
            if address.ip().is_unspecified()
                && address.is_ipv6()
                && error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) =>
        {
            TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], address.port()))).await
        }
        bound => bound,
    };
    bound.map_err(|error| {
        format!("{address} cannot be listened on: {error}; {}", address_advice(&error))
    })
}

/// Binds the unix socket, replacing one that an earlier process left behind. Blocks.
///
/// Nobody removes its file when the manager ends: its directory may be on a disk that hangs, and
/// the next start replaces it.
///
/// `for_others`: uids other than the manager's own and root are allowed, so the file's mode must
/// let them connect. Access is decided by the peer's uid, not by the mode.
///
/// # Errors
/// Why the socket cannot be bound, and what to do.
pub(super) fn unix(path: &Path, for_others: bool) -> Result<net::UnixListener, String> {
    let shown = path.display();
    remove_stale(path)?;
    let bound = net::UnixListener::bind(path).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let listener = bound.map_err(|error| {
        format!("{shown} cannot be made a unix socket: {error}; {}", socket_advice(&error))
    })?;
    let mode = if for_others { 0o666 } else { 0o660 };
    set_mode(path, mode).map_err(|error| {
        format!("{shown}: its mode cannot be set: {error}; choose a directory of our own uid")
    })?;
    Ok(listener)
}

/// Sets the mode of our socket at this path, and of nothing else that somebody may have put there since.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let there = open(path, flags, Mode::empty())?;
    let found = fstat(&there)?;
    let is_socket = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFSOCK.bits();
    if !is_socket || found.st_uid != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::other("it was replaced by something else"));
    }
    // The kernel sets no mode through a descriptor of this kind, but through its name.
    let name = format!("/proc/self/fd/{}", there.as_raw_fd());
    fs::set_permissions(name, fs::Permissions::from_mode(mode))
}

/// Removes the socket of a dead process.
fn remove_stale(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let metadata = match fs::symlink_metadata(path) {
        // If something else is wrong with the path, bind reports it.
        Err(_) => return Ok(()),
        Ok(metadata) => metadata,
    };
    if !metadata.file_type().is_socket() {
        return Err(format!(
            "{shown} exists and is not a socket: remove it, or choose another path with --socket"
        ));
    }
    if !is_stale(path) {
        return Err(format!(
            "{shown} is in use by a running process: end that one, or choose another path with \
             --socket"
        ));
    }
    fs::remove_file(path).map_err(|error| {
        format!(
            "{shown} was left behind by a dead process and cannot be removed: {error}; remove it"
        )
    })
}

/// True if no process listens. Only a refused connection proves that; a full queue, for example, does not.
fn is_stale(path: &Path) -> bool {
    // A full queue must not be waited for.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let connected = socket(AddressFamily::Unix, SockType::Stream, flags, None)
        .and_then(|socket| connect(socket.as_raw_fd(), &UnixAddr::new(path)?));
    connected == Err(Errno::ECONNREFUSED)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)] // proves JOURNAL-8
    async fn a_socket_whose_directory_hangs_is_waited_for_a_limited_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let settings = HttpSettings { socket: Some(path.clone()), ..HttpSettings::default() };
        let (kept, errors) = (KeptListener::default(), Errors::default());
        let mut binding = Binding::new(&settings, kept, &errors).unwrap();
        let (go, gate) = channel::<()>();
        let hung = binding.socket.as_ref().unwrap().worker.run(move || gate.recv());
        let began = Instant::now();
        binding.attempt().await;
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert!(binding.faults[0].contains("its directory does not answer"), "{binding:?}");
        go.send(()).unwrap();
        hung.await.unwrap().unwrap();
        while binding.unix.is_none() {
            binding.attempt().await;
        }
        assert!(binding.faults.is_empty() && path.exists());
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let first = tcp(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = first.local_addr().unwrap();
        let error = tcp(address).await.unwrap_err();
        assert!(
            error.contains(&address.to_string()) && error.contains("another process"),
            "{error}"
        );
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        for _ in 0..2 {
            let socket = unix(&path, false).unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o660);
            let error = unix(&path, false).unwrap_err();
            assert!(error.contains("in use by a running process"), "{error}");
            drop(socket);
            assert!(path.exists(), "nothing waits for its directory");
        }
    }

    #[test] // proves ACCESS-2
    fn the_mode_of_what_has_replaced_the_socket_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("s"), directory.path().join("other"));
        std::fs::write(&other, "").unwrap();
        let mode = || std::fs::metadata(&other).unwrap().permissions().mode();
        let before = mode();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        set_mode(&path, 0o666).unwrap_err();
        set_mode(&other, 0o666).unwrap_err();
        assert_eq!(mode(), before);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "").unwrap();
        let refused = |path: &Path| unix(path, false).unwrap_err();
        assert!(refused(&path).contains("is not a socket"));
        assert!(path.exists());
        let orphan = directory.path().join("none/s");
        assert!(refused(&orphan).contains("directory does not exist"));
        let long = directory.path().join("x".repeat(107));
        assert!(refused(&long).contains("choose a shorter path"));
    }
}
