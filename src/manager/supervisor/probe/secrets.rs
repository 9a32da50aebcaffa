//! The files of the probe: the engine's CA, and the credentials.
//!
//! They are read before the first call, and again when the engine refused what was in them. So no
//! watch is needed, and a new password works at the next call.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::header::HeaderValue;
use rustls::RootCertStore;
use stayput_http::pem::{self, PemError};
use thiserror::Error;
use tokio::time::timeout;

use super::login::authorization;
use crate::worker::{WorkPanicked, Worker};

/// How long reading may take: with the probe itself, less than the API waits.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
/// Size limit of a file in bytes. No such file is larger.
const MAX_FILE: u64 = 1024 * 1024;

/// Why the files cannot be used. The content is in no message.
#[derive(Debug, Error)]
pub(super) enum SecretsError {
    #[error("{option} {} cannot be read: {source}", path.display())]
    Unreadable { option: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Ca(#[from] PemError),
    #[error("--ready-ca {} holds a certificate that cannot be used: {source}", path.display())]
    UnusableCa { path: PathBuf, source: rustls::Error },
    #[error(
        "--ready-auth {} is neither USER:PASSWORD nor the value of an Authorization header, such as \
         ApiKey KEY",
        path.display()
    )]
    NoCredentials { path: PathBuf },
    #[error(
        "--ready-auth {} is a directory, but not like a Secret of the engine: it needs the files username \
         and password, or apiKey, or elastic (the password of that user), each with one line",
        path.display()
    )]
    NoSecret { path: PathBuf },
    #[error("the files of --ready-ca and --ready-auth did not answer: repair their volume")]
    Hang,
    #[error(transparent)]
    Panicked(#[from] WorkPanicked),
}

/// Content of the files.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    pub(super) roots: Option<Arc<RootCertStore>>,
    pub(super) authorization: Option<HeaderValue>,
}

/// The files of the probe, and the values last read from them.
#[derive(Debug)]
pub(super) struct SecretsFiles {
    ca: Option<PathBuf>,
    auth: Option<PathBuf>,
    read: Mutex<Option<Arc<Secrets>>>,
    /// The thread that reads: the supervisor's loop must not wait for a volume.
    worker: Worker,
    /// True while the thread reads: while a volume hangs, no call waits for it, and none passes in more work.
    reading: Arc<AtomicBool>,
}

impl SecretsFiles {
    pub(super) fn new(ca: Option<PathBuf>, auth: Option<PathBuf>, worker: Worker) -> Self {
        Self { ca, auth, read: Mutex::default(), worker, reading: Arc::default() }
    }

    /// The content of the files; reads them if it is not known.
    pub(super) async fn get(&self) -> Result<Arc<Secrets>, SecretsError> {
        if let Some(read) = self.last().clone() {
            return Ok(read);
        }
        let read = Arc::new(self.read().await?);
        *self.last() = Some(read.clone());
        Ok(read)
    }

    /// Forgets the content, because the engine refused it: the files may have changed.
    pub(super) fn read_again(&self) {
        *self.last() = None;
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Arc<Secrets>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self) -> Result<Secrets, SecretsError> {
        if self.reading.swap(true, Ordering::SeqCst) {
            return Err(SecretsError::Hang);
        }
        let reading = Reading(self.reading.clone());
        let (ca, auth) = (self.ca.clone(), self.auth.clone());
        let reader = self.worker.run(move || {
            let _reading = reading;
            load(ca.as_deref(), auth.as_deref())
        });
        match timeout(READ_TIMEOUT, reader).await {
            Ok(secrets) => secrets?,
            Err(_) => Err(SecretsError::Hang),
        }
    }
}

/// Notes, until it is dropped, that the files are being read. Work that is not begun, because its
/// call was given up, is dropped as well.
struct Reading(Arc<AtomicBool>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

fn load(ca: Option<&Path>, auth: Option<&Path>) -> Result<Secrets, SecretsError> {
    Ok(Secrets {
        roots: ca.map(roots).transpose()?.map(Arc::new),
        authorization: auth.map(authorization).transpose()?,
    })
}

fn roots(path: &Path) -> Result<RootCertStore, SecretsError> {
    let mut roots = RootCertStore::empty();
    let content = content("--ready-ca", path)?;
    for certificate in pem::certificates(&format!("--ready-ca {}", path.display()), &content)? {
        roots
            .add(certificate)
            .map_err(|source| SecretsError::UnusableCa { path: path.to_owned(), source })?;
    }
    Ok(roots)
}

pub(super) fn content(option: &'static str, path: &Path) -> Result<Vec<u8>, SecretsError> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        Err(source) => Err(SecretsError::Unreadable { option, path: path.to_owned(), source }),
    }
}
