//! Credentials and CA of the probe, from files or from the directory of a mounted Secret.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use rustls::RootCertStore;
use tokio::time::timeout;

use crate::worker::Worker;
use stayput_http::pem;

/// The keys of a Secret that `spec.engine.credentialsSecret` of a SearchCluster can name, too.
const API_KEY: &str = "apiKey";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
/// The password of this user, as ECK keeps it.
const ELASTIC: &str = "elastic";

/// The value of the header `Authorization`. No message contains it.
pub(super) fn authorization(path: &Path) -> Result<HeaderValue, String> {
    if path.is_dir() {
        return of_secret(path);
    }
    let content = content("--ready-auth", path)?;
    header(&content).ok_or_else(|| {
        format!(
            "--ready-auth {} is neither USER:PASSWORD nor the value of an Authorization header, \
             such as ApiKey KEY",
            path.display()
        )
    })
}

/// Header from a Secret that is mounted as a directory: each key is a file.
fn of_secret(directory: &Path) -> Result<HeaderValue, String> {
    let has = |key: &str| directory.join(key).exists();
    let wrong = || {
        format!(
            "--ready-auth {} is a directory, but not like a Secret of the engine: it needs the files \
             username and password, or apiKey, or elastic (the password of that user), each with one \
             line",
            directory.display()
        )
    };
    let read = |key: &str| {
        let content = content("--ready-auth", &directory.join(key))?;
        line(&content).filter(|line| !line.is_empty()).map(str::to_owned).ok_or_else(wrong)
    };
    let value = if has(API_KEY) {
        sensitive(format!("ApiKey {}", read(API_KEY)?))
    } else if has(USERNAME) {
        basic(&read(USERNAME)?, &read(PASSWORD)?)
    } else if has(ELASTIC) {
        basic(ELASTIC, &read(ELASTIC)?)
    } else {
        None
    };
    value.ok_or_else(wrong)
}

/// The header for `USER:PASSWORD`, or for a text that already is its value: `ApiKey KEY`, `Bearer TOKEN`.
fn header(content: &[u8]) -> Option<HeaderValue> {
    let line = line(content)?;
    let is_header = line.split_once(' ').is_some_and(|(scheme, value)| {
        ["apikey", "bearer", "basic"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && !value.trim().is_empty()
    });
    match line.split_once(':') {
        _ if is_header => sensitive(line.to_owned()),
        Some((user, password)) if !user.is_empty() => basic(user, password),
        Some(_) | None => None,
    }
}

/// The only line of a file. Editors and `echo` add a newline; a password may end with a space.
fn line(content: &[u8]) -> Option<&str> {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    (!line.contains(char::is_control)).then_some(line)
}

/// The header of basic authentication. The first colon ends the name of the user, so there is none in it.
fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    if user.contains(':') {
        return None;
    }
    sensitive(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

fn sensitive(value: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

// The files of the probe: the engine's CA, and the credentials.
//
// They are read before the first call, and again when the engine refused what was in them. So no
// watch is needed, and a new password works at the next call.

/// How long reading may take: with the probe itself, less than the API waits.
const READ_TIMEOUT: Duration = Duration::from_millis(500);
/// Size limit of a file in bytes. No such file is larger.
const MAX_FILE: u64 = 1024 * 1024;

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
    pub(super) async fn get(&self) -> Result<Arc<Secrets>, String> {
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

    async fn read(&self) -> Result<Secrets, String> {
        let hangs = "the files of --ready-ca and --ready-auth did not answer: repair their volume";
        if self.reading.swap(true, Ordering::SeqCst) {
            return Err(hangs.to_owned());
        }
        let reading = Reading(self.reading.clone());
        let (ca, auth) = (self.ca.clone(), self.auth.clone());
        let reader = self.worker.run(move || {
            let _reading = reading;
            load(ca.as_deref(), auth.as_deref())
        });
        match timeout(READ_TIMEOUT, reader).await {
            Ok(secrets) => secrets.map_err(|panicked| panicked.to_string())?,
            Err(_) => Err(hangs.to_owned()),
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

fn load(ca: Option<&Path>, auth: Option<&Path>) -> Result<Secrets, String> {
    Ok(Secrets {
        roots: ca.map(roots).transpose()?.map(Arc::new),
        authorization: auth.map(authorization).transpose()?,
    })
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let content = content("--ready-ca", path)?;
    pem::roots(&format!("--ready-ca {}", path.display()), &content)
}

pub(super) fn content(option: &'static str, path: &Path) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(content),
        Err(error) => Err(format!("{option} {} cannot be read: {error}", path.display())),
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
        for bad in
            [&b""[..], b"\n", b"secret", b":secret", b"a:b\nc:d", b"a:b\n\n", b"ApiKey ", b"a:\xff"]
        {
            assert_eq!(text(bad), None, "{bad:?}");
        }
        let debug = format!("{:?}", header(b"elastic:secret"));
        assert!(!debug.contains("ZWxhc3RpYz"), "{debug}");
    }

    #[test] // proves STOP-37
    fn a_mounted_secret_has_the_keys_that_a_search_cluster_takes() {
        let of = |files: &[(&str, &str)]| {
            let directory = tempfile::tempdir().unwrap();
            for (name, content) in files {
                std::fs::write(directory.path().join(name), content).unwrap();
            }
            let value = authorization(directory.path());
            value.map(|value| value.to_str().unwrap().to_owned()).map_err(|error| error.to_string())
        };
        let elastic = Ok("Basic ZWxhc3RpYzphOmIgw7w=".to_owned());
        assert_eq!(of(&[("elastic", "a:b ü")]), elastic, "as ECK keeps it");
        let user = [("username", "elastic\n"), ("password", "a:b ü\n"), ("tls.key", "x\ny")];
        assert_eq!(of(&user), elastic);
        assert_eq!(of(&[("elastic", "no"), user[0], user[1]]), elastic);
        let key = of(&[("apiKey", "aWQ6a2V5"), user[0], user[1]]);
        assert_eq!(key, Ok("ApiKey aWQ6a2V5".to_owned()));
        for (files, reason) in [
            (&[][..], "it needs the files username and password, or apiKey, or elastic"),
            (&[("username", "elastic")], "/password cannot be read: No such file"),
            (&[("username", "a:b"), ("password", "hush")], "is a directory, but"),
            (&[("username", "a"), ("password", "hush\nhush")], "each with one line"),
            (&[("elastic", "")], "each with one line"),
        ] {
            let error = of(files).expect_err(reason);
            assert!(error.contains(reason) && !error.contains("hush"), "{error}");
        }
    }
}
