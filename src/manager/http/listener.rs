//! Binds the TCP listener and the unix socket.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::{Mode, SFlag, fstat};
use thiserror::Error;
use tokio::net::TcpListener;

/// The longest path the kernel takes, in bytes (`sun_path` without its terminating zero).
const MAX_SOCKET_PATH: usize = 107;

/// Why an address or a path cannot be bound, and what to do.
#[derive(Debug, Error)]
pub(super) enum BindError {
    #[error("{address} cannot be listened on: {source}; {}", address_advice(source))]
    Address { address: SocketAddr, source: io::Error },
    #[error(
        "{}: the path of a unix socket has at most {MAX_SOCKET_PATH} bytes: choose a shorter one \
         with --socket", path.display()
    )]
    PathTooLong { path: PathBuf },
    #[error("{} cannot be made a unix socket: {source}; {}", path.display(), socket_advice(source))]
    Socket { path: PathBuf, source: io::Error },
    #[error(
        "{}: its mode cannot be set: {source}; choose a directory of our own uid", path.display()
    )]
    Mode { path: PathBuf, source: io::Error },
    #[error(
        "{} exists and is not a socket: remove it, or choose another path with --socket",
        path.display()
    )]
    NotASocket { path: PathBuf },
    #[error(
        "{} is in use by a running process: end that one, or choose another path with --socket",
        path.display()
    )]
    InUse { path: PathBuf },
    #[error(
        "{} was left behind by a dead process and cannot be removed: {source}; remove it",
        path.display()
    )]
    Stale { path: PathBuf, source: io::Error },
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
        _ => "choose another path with --socket",
    }
}

/// Binds the TCP address.
///
/// # Errors
/// [`BindError::Address`].
pub(super) async fn tcp(address: SocketAddr) -> Result<TcpListener, BindError> {
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
    bound.map_err(|source| BindError::Address { address, source })
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
/// See [`BindError`].
pub(super) fn unix(path: &Path, for_others: bool) -> Result<UnixListener, BindError> {
    let own = || path.to_owned();
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(BindError::PathTooLong { path: own() });
    }
    remove_stale(path)?;
    let bound = UnixListener::bind(path).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let listener = bound.map_err(|source| BindError::Socket { path: own(), source })?;
    let mode = if for_others { 0o666 } else { 0o660 };
    set_mode(path, mode).map_err(|source| BindError::Mode { path: own(), source })?;
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
fn remove_stale(path: &Path) -> Result<(), BindError> {
    let own = || path.to_owned();
    let metadata = match fs::symlink_metadata(path) {
        // If something else is wrong with the path, bind reports it.
        Err(_) => return Ok(()),
        Ok(metadata) => metadata,
    };
    if !metadata.file_type().is_socket() {
        return Err(BindError::NotASocket { path: own() });
    }
    if !is_stale(path) {
        return Err(BindError::InUse { path: own() });
    }
    fs::remove_file(path).map_err(|source| BindError::Stale { path: own(), source })
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
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let first = tcp(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = first.local_addr().unwrap();
        let error = tcp(address).await.unwrap_err().to_string();
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
            let error = unix(&path, false).unwrap_err().to_string();
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
        let refused = |path: &Path| unix(path, false).unwrap_err().to_string();
        assert!(refused(&path).contains("is not a socket"));
        assert!(path.exists());
        let orphan = directory.path().join("none/s");
        assert!(refused(&orphan).contains("directory does not exist"));
        let long = directory.path().join("x".repeat(MAX_SOCKET_PATH));
        assert!(refused(&long).contains("shorter"));
    }
}
