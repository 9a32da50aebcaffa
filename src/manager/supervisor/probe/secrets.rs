//! The files of the probe: the engine's CA, and what to log in with.
//!
//! They are read before the first call, and again when the engine refused what was in them. So no
//! watch is needed, and a new password works at the next call.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use rustls::RootCertStore;
use stayput_net::pem::{self, PemError};
use thiserror::Error;
use tokio::time::timeout;

use crate::worker::{WorkPanicked, Worker};

/// How long reading may take: with the probe itself, less than the API waits.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
/// In bytes. No such file is larger.
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
    #[error("the files of --ready-ca and --ready-auth did not answer: repair their volume")]
    Hang,
    #[error(transparent)]
    Panicked(#[from] WorkPanicked),
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    pub(super) roots: Option<Arc<RootCertStore>>,
    pub(super) authorization: Option<HeaderValue>,
}

/// The files, and what was last read from them.
#[derive(Debug)]
pub(super) struct SecretsFiles {
    ca: Option<PathBuf>,
    auth: Option<PathBuf>,
    read: Mutex<Option<Arc<Secrets>>>,
    /// The thread that reads: the supervisor's loop must not wait for a volume.
    worker: Worker,
    /// It reads: while a volume hangs, no call waits for it, and none passes in more work.
    reading: Arc<AtomicBool>,
}

impl SecretsFiles {
    pub(super) fn new(ca: Option<PathBuf>, auth: Option<PathBuf>, worker: Worker) -> Self {
        Self { ca, auth, read: Mutex::default(), worker, reading: Arc::default() }
    }

    /// What is in the files.
    pub(super) async fn get(&self) -> Result<Arc<Secrets>, SecretsError> {
        if let Some(read) = self.last().clone() {
            return Ok(read);
        }
        let read = Arc::new(self.read().await?);
        *self.last() = Some(read.clone());
        Ok(read)
    }

    /// The engine refused what was read: the files may have changed.
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

/// Until it is dropped the files are being read. Work that is not begun, because its call was given
/// up, is dropped as well.
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

fn authorization(path: &Path) -> Result<HeaderValue, SecretsError> {
    let content = content("--ready-auth", path)?;
    header(&content).ok_or_else(|| SecretsError::NoCredentials { path: path.to_owned() })
}

/// The header for `USER:PASSWORD`, or for what already is its value: `ApiKey KEY`, `Bearer TOKEN`.
fn header(content: &[u8]) -> Option<HeaderValue> {
    // Editors and `echo` add a newline. A password may end with a space.
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    let is_header = line.split_once(' ').is_some_and(|(scheme, value)| {
        ["apikey", "bearer", "basic"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && !value.trim().is_empty()
    });
    let value = match line.split_once(':') {
        _ if line.contains(char::is_control) => return None,
        _ if is_header => line.to_owned(),
        Some((user, _)) if !user.is_empty() => format!("Basic {}", STANDARD.encode(line)),
        Some(_) | None => return None,
    };
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn content(option: &'static str, path: &Path) -> Result<Vec<u8>, SecretsError> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        Err(source) => Err(SecretsError::Unreadable { option, path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_and_password_or_a_whole_header() {
        let text = |content: &[u8]| header(content).map(|value| value.to_str().unwrap().to_owned());
        let basic = Some("Basic ZWxhc3RpYzphOmIgw7w=".to_owned());
        assert_eq!(text("elastic:a:b ü".as_bytes()), basic);
        assert_eq!(text("elastic:a:b ü\r\n".as_bytes()), basic);
        assert_eq!(text(b"ApiKey aWQ6a2V5\n").as_deref(), Some("ApiKey aWQ6a2V5"));
        assert_eq!(text(b"bearer a.b.c").as_deref(), Some("bearer a.b.c"));
        for bad in [&b""[..], b"\n", b"secret", b":secret", b"a:b\nc:d", b"ApiKey ", b"a:\xff"] {
            assert_eq!(text(bad), None, "{bad:?}");
        }
        let debug = format!("{:?}", header(b"elastic:secret"));
        assert!(!debug.contains("ZWxhc3RpYz"), "{debug}");
    }
}
