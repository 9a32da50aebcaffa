//! The certificate and key that could last be used, kept in the state directory and served while the
//! mounted ones cannot be: without TLS no probe is answered, and the kubelet kills the engine for it.
//!
//! **The file holds a private key**: 0600. A thread of its own reads and writes it, so that nothing
//! waits for its disk, and nothing fails by it.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::private_file;
use crate::worker::Worker;

/// Size limit of the file in bytes. Certificate and key are 1 MiB each at most; JSON needs two
/// bytes for the end of a line.
const MAX_FILE: u64 = 4 << 20;
/// Longest wait for the file; meanwhile changed keys are not read.
const READING: Duration = Duration::from_secs(5);

/// A certificate chain and its private key, in PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

impl Pair {
    pub(super) fn new(certificate: &[u8], key: &[u8]) -> Self {
        // PEM itself is ASCII.
        let text = |pem| String::from_utf8_lossy(pem).into_owned();
        Self { certificate: text(certificate), key: text(key) }
    }
}

/// Place where the pair is kept, and the thread that reads and writes it.
#[derive(Debug, Clone)]
pub struct KeptPair {
    path: PathBuf,
    worker: Worker,
}

/// A pair that is being written. If it is dropped before that begins, nothing is written.
pub(super) type Keeping = Pin<Box<dyn Future<Output = ()> + Send>>;

impl KeptPair {
    /// The file in this directory; the thread has no other work.
    pub fn new(state_dir: &Path, worker: Worker) -> Self {
        Self { path: state_dir.join("tls.json"), worker }
    }

    /// The pair that was kept, if there is one that can be read in time.
    pub(super) async fn load(&self) -> Option<Pair> {
        let path = self.path.clone();
        let why = match timeout(READING, self.worker.run(move || load(&path))).await {
            Ok(Ok(Ok(pair))) => return pair,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its disk does not answer".to_owned(),
        };
        let path = self.path.display();
        tracing::warn!("the certificate that was kept in {path} cannot be read: {why}");
        None
    }

    /// Begins to keep a pair.
    pub(super) fn keep(&self, pair: Pair) -> Keeping {
        let path = self.path.clone();
        let written = self.worker.run(move || {
            if let Err(error) = save(&path, &pair) {
                tracing::warn!(
                    "the certificate cannot be kept in {}: {error}; if the mounted one cannot be \
                     used at the next start of the container, an older one is served, or none",
                    path.display()
                );
            }
        });
        Box::pin(async move {
            // A panic is reported.
            let _ = written.await;
        })
    }
}

fn load(path: &Path) -> io::Result<Option<Pair>> {
    // Whoever else may write there must not choose another file, or one that is waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::other("it is not a file of the manager's user"));
    }
    let mut content = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(Some(serde_json::from_slice(&content)?))
}

fn save(path: &Path, pair: &Pair) -> io::Result<()> {
    // Mostly the same pair was kept at an earlier start.
    if load(path).is_ok_and(|kept| kept.as_ref() == Some(pair)) {
        return Ok(());
    }
    private_file::replace(path, &serde_json::to_vec(pair)?, || Ok(()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test] // proves ACCESS-14
    fn a_pair_is_kept_for_its_owner_and_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tls.json");
        assert!(load(&path).unwrap().is_none());
        let (one, two) = (Pair::new(b"a\nb", b"key"), Pair::new(b"c", b"key"));
        for pair in [&one, &two, &two] {
            save(&path, pair).unwrap();
            assert!(load(&path).unwrap().as_ref() == Some(pair));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let other = directory.path().join("other");
        fs::rename(&path, &other).unwrap();
        symlink(&other, &path).unwrap();
        load(&path).unwrap_err();
        save(&path, &one).unwrap();
        assert!(load(&path).unwrap() == Some(one));
        assert!(load(&other).unwrap() == Some(two), "what a link pointed to stays");
    }

    #[test]
    fn what_cannot_be_read_is_replaced_and_never_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tls.json");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        load(&path).unwrap_err();
        let pair = Pair::new(b"a", b"b");
        save(&path, &pair).unwrap();
        assert!(load(&path).unwrap() == Some(pair.clone()));
        fs::write(&path, "torn").unwrap();
        load(&path).unwrap_err();
        save(&path, &pair).unwrap();
        assert!(load(&path).unwrap() == Some(pair));
    }
}
