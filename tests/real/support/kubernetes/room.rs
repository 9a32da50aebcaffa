//! Where one instance keeps what it needs: a directory and ports, shared with nobody.

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

/// Before the pid of the test binary that made the directory.
const PREFIX: &str = "stayput-kube.";

/// A directory of this test's own. What tests that were killed have left is removed first.
pub(crate) fn directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    sweep(&std::env::temp_dir());
    let prefix = format!("{PREFIX}{}.", std::process::id());
    let directory = tempfile::Builder::new().prefix(&prefix).tempdir().expect("a temp dir");
    // Engines of other users look in here.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("permissions");
    directory
}

fn sweep(below: &Path) {
    for entry in std::fs::read_dir(below).expect("the temp dir").flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let Some((pid, _)) = rest.split_once('.') else { continue };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            // Of another user, perhaps.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A port of loopback that nobody listens on. Not one that the kernel gives to clients: one of
/// theirs could take it before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 12_000).expect("a small number");
    loop {
        let port = 20_000 + (own + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
