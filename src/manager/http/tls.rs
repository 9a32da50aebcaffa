//! TLS of the listener, built from PEM, and the kept certificate. It uses ring, never the default
//! provider of the process.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::key_files::Keys;
use crate::files;
use crate::worker::Worker;
use stayput_http::https::{FROM_1_2, ONLY_1_3, Versions};
use stayput_http::pem::{self, Expiry, Validity};

/// The oldest TLS version that the listener accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsMin {
    V1_2,
    #[default]
    V1_3,
}

impl TlsMin {
    fn versions(self) -> Versions {
        match self {
            Self::V1_2 => FROM_1_2,
            Self::V1_3 => ONLY_1_3,
        }
    }
}

impl FromStr for TlsMin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err("the versions are 1.3 and 1.2; older ones are not safe"),
        }
    }
}

/// Builds the configuration. With `client_ca`, clients are asked for a certificate, but may connect
/// without one (the kubelet's probes have none): access is decided per route.
///
/// # Errors
/// The document that is wrong, and what to do; not its file's name.
pub(super) fn server_config(
    certificate: &[u8],
    key: &[u8],
    client_ca: Option<&[u8]>,
    min: TlsMin,
) -> Result<ServerConfig, String> {
    let chain = pem::certificates("the certificate file", certificate)?;
    let key = pem::private_key("the key file", key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(min.versions())
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = pem::roots("the client CA file", ca)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| format!("the client CA file cannot be used: {error}"))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "the key is not the certificate's: give the pair that was issued together".to_owned()
        }
        error => format!("certificate and key cannot be used: {error}"),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Clients are few and keep their connections. Stored sessions would only cost memory, and a
    // resumed one would skip the check of the client's certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

// The certificate and key that could last be used, kept in the state directory and served while the
// mounted ones cannot be: without TLS no probe is answered, and the kubelet kills the engine for it.
//
// **The file holds a private key**: 0600. A thread of its own reads and writes it, so that nothing
// waits for its disk, and nothing fails by it.

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
    files::replace_file(path, &serde_json::to_vec(pair)?, || Ok(()))
}

/// Problem to report at `now`, and what to do; only shortly before the end and after it.
pub(super) fn problem(validity: Validity, now: u64) -> Option<String> {
    let how = match validity.expiry(now) {
        Expiry::Later => return None,
        Expiry::Soon => "expires",
        Expiry::Over => "has expired",
    };
    let end = pem::date(validity.not_after);
    Some(format!("the API's certificate {how} at {end}: renew --tls-cert"))
}

/// A key that was taken away lets callers in no longer than this, also where changes of files are
/// not told. Well below the 30 s that are promised.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The last reading of the files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// The reading is done; the time when it began.
    Began(Instant),
    /// The reading takes long: nobody shall wait for it.
    Hangs,
}

impl Check {
    fn is_old(self) -> bool {
        match self {
            Self::Began(at) => at.elapsed() > MAX_AGE,
            Self::Hangs => false,
        }
    }
}

/// The keys in force.
#[derive(Debug)]
pub(super) struct CheckedKeys {
    keys: watch::Receiver<Arc<Keys>>,
    checks: watch::Receiver<Check>,
    asked: Arc<Notify>,
}

impl CheckedKeys {
    pub(super) fn new(
        keys: watch::Receiver<Arc<Keys>>,
        checks: watch::Receiver<Check>,
        asked: Arc<Notify>,
    ) -> Self {
        Self { keys, checks, asked }
    }

    /// The keys as last read.
    pub(super) fn in_force(&self) -> Arc<Keys> {
        self.keys.borrow().clone()
    }

    /// The keys on disk, to let a caller in; the keys as last read if the disk hangs.
    pub(super) async fn checked(&self) -> Arc<Keys> {
        let is_old = self.checks.borrow().is_old();
        if is_old {
            self.asked.notify_one();
            // Without key files nobody reads, and the sender is gone.
            let _ = self.checks.clone().wait_for(|check| !check.is_old()).await;
        }
        self.in_force()
    }

    /// Follows the keys in force.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<Keys>> {
        self.keys.clone()
    }
}

#[cfg(test)]
mod tests;
