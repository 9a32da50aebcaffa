//! Binds the listener and the unix socket, with a sentence for everything that may be in the way.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener, UnixStream};

/// The longest path the kernel takes (`sun_path` without its terminating zero).
const MAX_SOCKET_PATH: usize = 107;

/// Binds the TCP address.
///
/// # Errors
/// A sentence that says what is in the way and what to do.
pub(super) async fn tcp(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = match TcpListener::bind(address).await {
        // A kernel without IPv6: all interfaces are those of IPv4 then.
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
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "another process has it: end that one, or choose another port with --listen"
            }
            ErrorKind::AddrNotAvailable => {
                "this machine does not have the address: correct --listen"
            }
            ErrorKind::PermissionDenied => {
                "ports below 1024 need privileges: choose a higher one with --listen"
            }
            _ => "correct --listen",
        };
        format!("{address} cannot be listened on: {error}; {advice}")
    })
}

/// A unix socket that takes its file away when it is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it cannot be removed, the next start finds it stale and replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Binds the unix socket, replacing one that a dead process left behind.
///
/// `for_others`: uids besides our own and root are allowed in, so the file's mode must let them
/// through. The mode is not what keeps others out; the peer's uid is.
///
/// # Errors
/// A sentence that says what is in the way and what to do.
pub(super) async fn unix(path: &Path, for_others: bool) -> Result<Socket, String> {
    let name = path.display();
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(format!(
            "{name}: the path of a unix socket has at most {MAX_SOCKET_PATH} bytes: choose a \
             shorter one with --socket"
        ));
    }
    make_room(path).await?;
    let listener = UnixListener::bind(path).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::NotFound => "its directory does not exist: create it or mount it",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "its directory is not writable: mount a writable volume there"
            }
            _ => "choose another path with --socket",
        };
        format!("{name} cannot be made a unix socket: {error}; {advice}")
    })?;
    let socket = Socket { listener, path: path.to_owned() };
    let mode = if for_others { 0o666 } else { 0o660 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|error| {
        format!("{name}: its mode cannot be set: {error}; choose a directory of our own uid")
    })?;
    Ok(socket)
}

async fn make_room(path: &Path) -> Result<(), String> {
    let name = path.display();
    let metadata = match std::fs::symlink_metadata(path) {
        // Whatever else is wrong with the path, bind says it too.
        Err(_) => return Ok(()),
        Ok(metadata) => metadata,
    };
    if !metadata.file_type().is_socket() {
        return Err(format!(
            "{name} exists and is not a socket: remove it, or choose another path with --socket"
        ));
    }
    if !is_stale(UnixStream::connect(path).await) {
        return Err(format!(
            "{name} is in use by a running process: end that one, or choose another path with \
             --socket"
        ));
    }
    std::fs::remove_file(path).map_err(|error| {
        format!(
            "{name} was left behind by a dead process and cannot be removed: {error}; remove it"
        )
    })
}

/// Only a refused connection proves that nobody listens; a full queue, for one, does not.
fn is_stale(connected: io::Result<UnixStream>) -> bool {
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = unix(&path, false).await.unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        let error = unix(&path, false).await.unwrap_err();
        assert!(error.contains("in use by a running process"), "{error}");
        drop(socket);
        assert!(!path.exists(), "it takes its file away");
    }

    #[tokio::test]
    async fn what_is_in_the_way_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "").unwrap();
        assert!(unix(&path, false).await.unwrap_err().contains("is not a socket"));
        assert!(path.exists());
        let orphan = directory.path().join("none/s");
        assert!(unix(&orphan, false).await.unwrap_err().contains("directory does not exist"));
        let long = directory.path().join("x".repeat(MAX_SOCKET_PATH));
        assert!(unix(&long, false).await.unwrap_err().contains("shorter"));
    }
}
