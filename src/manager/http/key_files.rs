//! Reads keys and certificates from their files as one value.
//!
//! If a new file cannot be used, the old value stays in force. A file that is gone or empty, or a
//! key set without any key for us, is another matter if it lets callers in (keys of tokens, the
//! client CA): it was taken away, and lets in nobody any more. The certificate is kept.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::ServerConfig;

use super::auth::{Key, KeyError, Rules, Tokens, read_key_set, read_public, read_shared};
use super::settings::HttpSettings;
use super::tls::{self, Pair, TlsMin};
use stayput_http::pem;
use stayput_http::pem::Validity;

/// Size limit of a key file in bytes. No key file is larger.
const MAX_FILE: u64 = 1024 * 1024;

/// Number of files before the client CA: certificate and key.
const PAIR: usize = 2;

pub(super) type FileDigest = [u8; 32];

/// The keys and certificates in force.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// Absent without `--tls-cert`, or if no usable certificate was read yet.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// True if there is no `--tls-cert`: plain HTTP is spoken.
    pub(super) clear_text: bool,
    /// Digest of the client CA's file, if client certificates are accepted.
    pub(super) client_ca: Option<FileDigest>,
    /// Validity of the served certificate.
    pub(super) validity: Option<Validity>,
    pub(super) tokens: Arc<Tokens>,
    /// False if a file on disk is not the one in force.
    pub(super) is_current: bool,
}

impl Keys {
    /// True if TLS is to be spoken, and no usable certificate was read yet.
    pub(super) fn lacks_certificate(&self) -> bool {
        self.tls.is_none() && !self.clear_text
    }
}

type ParseKeys = fn(&[u8]) -> Result<Vec<Key>, KeyError>;

/// TLS settings made from certificate, key and client CA.
#[derive(Debug)]
pub(super) struct Tls {
    pub(super) config: Arc<ServerConfig>,
    client_ca: Option<FileDigest>,
    pub(super) validity: Option<Validity>,
    /// Certificate and key that the settings were made from, until they are taken.
    pair: Option<Pair>,
}

impl Tls {
    /// Makes settings from a pair alone: a certificate lets in nobody.
    ///
    /// # Errors
    /// The fault of the pair.
    pub(super) fn from_pair(pair: &Pair, min: TlsMin) -> Result<Self, KeyError> {
        read_tls(&[pair.certificate.clone().into_bytes(), pair.key.clone().into_bytes()], min)
    }
}

/// The key files, and the values last read from them.
#[derive(Debug)]
pub(super) struct KeyFiles {
    rules: Rules,
    tls_min: TlsMin,
    tls: Option<Loaded<Tls>>,
    keys: Vec<(Loaded<Vec<Key>>, ParseKeys)>,
    tokens: Arc<Tokens>,
}

/// The value in force of one or more files, and the reason why newer files cannot replace it.
#[derive(Debug)]
struct Loaded<T> {
    paths: Vec<PathBuf>,
    digest: Option<FileDigest>,
    value: Option<T>,
    error: Option<String>,
}

impl KeyFiles {
    /// The files of these settings, not read yet.
    pub(super) fn new(settings: &HttpSettings) -> Self {
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(cert), Some(key)) => {
                let paths = [cert, key].into_iter().chain(&settings.client_ca).cloned();
                Some(Loaded::new(paths.collect()))
            }
            _ => None,
        };
        let sources: [(&Option<PathBuf>, ParseKeys); 3] = [
            (&settings.jwt_key, read_shared),
            (&settings.jwt_public_key, read_public),
            (&settings.jwks, read_key_set),
        ];
        let keys = sources.into_iter().filter_map(|(path, parse)| {
            path.as_ref().map(|path| (Loaded::new(vec![path.clone()]), parse))
        });
        let (keys, rules) = (keys.collect::<Vec<_>>(), settings.rules());
        let tokens = tokens(&keys, &rules);
        let tls_min = settings.tls_min.unwrap_or_default();
        Self { rules, tls_min, tls, keys, tokens }
    }

    /// Reads the files. True if a value or an error is different now. Blocks.
    pub(super) fn reread(&mut self) -> bool {
        let min = self.tls_min;
        let tls = self.tls.as_mut().map_or(Change::None, |loaded| loaded.reread_tls(min));
        let mut keys = Change::None;
        for (loaded, parse) in &mut self.keys {
            keys = keys.max(loaded.reread_keys(*parse));
        }
        if keys == Change::Value {
            self.tokens = tokens(&self.keys, &self.rules);
        }
        tls.max(keys) != Change::None
    }

    /// The value in force.
    pub(super) fn keys(&self) -> Keys {
        let tls = self.tls.as_ref().and_then(|loaded| loaded.value.as_ref());
        Keys {
            tls: tls.map(|tls| tls.config.clone()),
            clear_text: self.tls.is_none(),
            client_ca: tls.and_then(|tls| tls.client_ca),
            validity: tls.and_then(|tls| tls.validity),
            tokens: self.tokens.clone(),
            is_current: self.errors().is_empty(),
        }
    }

    /// The certificate and key in force, once for each that came into force.
    pub(super) fn take_new_pair(&mut self) -> Option<Pair> {
        self.tls.as_mut()?.value.as_mut()?.pair.take()
    }

    /// Reasons why files on disk are not in force.
    pub(super) fn errors(&self) -> Vec<String> {
        let tls = self.tls.iter().filter_map(|loaded| loaded.error.as_ref());
        let keys = self.keys.iter().filter_map(|(loaded, _)| loaded.error.as_ref());
        tls.chain(keys).cloned().collect()
    }

    /// The paths of all key files in the settings.
    pub(super) fn paths(settings: &HttpSettings) -> impl Iterator<Item = &Path> {
        let files = [
            &settings.tls_cert,
            &settings.tls_key,
            &settings.client_ca,
            &settings.jwt_key,
            &settings.jwt_public_key,
            &settings.jwks,
        ];
        files.into_iter().flatten().map(PathBuf::as_path)
    }
}

fn tokens(keys: &[(Loaded<Vec<Key>>, ParseKeys)], rules: &Rules) -> Arc<Tokens> {
    let keys = keys.iter().flat_map(|(loaded, _)| loaded.value.iter().flatten().cloned()).collect();
    Arc::new(Tokens::new(keys, rules))
}

fn read_tls(files: &[Vec<u8>], min: TlsMin) -> Result<Tls, KeyError> {
    let [cert, key, ca @ ..] = files else {
        return Err("certificate and key belong together".to_owned().into());
    };
    let config = Arc::new(tls::server_config(cert, key, ca.first().map(Vec::as_slice), min)?);
    let chain = pem::certificates("the certificate file", cert)?;
    let client_ca = (!ca.is_empty()).then(|| digest(ca));
    let pair = Some(Pair::new(cert, key));
    Ok(Tls { config, client_ca, validity: Validity::of(&chain), pair })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Error,
    Value,
}

impl Loaded<Tls> {
    fn reread_tls(&mut self, min: TlsMin) -> Change {
        let read_tls = |files: &[Vec<u8>]| read_tls(files, min);
        let error = match self.adopt(self.paths.len(), read_tls) {
            Ok(change) => return self.settled(change),
            Err(error) => error,
        };
        let mut change = Change::None;
        if let Some(ca) = self.paths.get(PAIR) {
            let accepting = self.value.as_mut().filter(|tls| tls.client_ca.is_some());
            match accepting {
                Some(tls) if is_taken_away(ca) => {
                    tls.client_ca = None;
                    self.digest = None;
                    change = Change::Value;
                }
                Some(_) => {}
                // Without a usable CA nobody is let in by a certificate, and all else works.
                None => change = self.adopt(PAIR, read_tls).unwrap_or(Change::None),
            }
        }
        change.max(self.keep(error))
    }
}

impl Loaded<Vec<Key>> {
    fn reread_keys(&mut self, parse: ParseKeys) -> Change {
        let parse = |files: &[Vec<u8>]| parse(files.first().map_or(&[], Vec::as_slice));
        let error = match self.adopt(self.paths.len(), parse) {
            Ok(change) => return self.settled(change),
            Err(error) => error,
        };
        let mut change = Change::None;
        let is_taken_away =
            error.is_set_without_keys || self.paths.iter().any(|path| is_taken_away(path));
        if self.value.is_some() && is_taken_away {
            (self.value, self.digest) = (None, None);
            change = Change::Value;
        }
        change.max(self.keep(error))
    }
}

/// Why new files cannot be put in force.
struct Unusable {
    message: String,
    /// True if a whole key set was read, and it says that no key is valid.
    is_set_without_keys: bool,
}

impl<T> Loaded<T> {
    fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, digest: None, value: None, error: None }
    }

    /// Puts the first files in force.
    fn adopt(
        &mut self,
        count: usize,
        parse: impl Fn(&[Vec<u8>]) -> Result<T, KeyError>,
    ) -> Result<Change, Unusable> {
        let paths = &self.paths[..count];
        let files = read_all(paths)?;
        // Compared by content: the kubelet replaces the directory also when nothing changed, and a
        // new TLS configuration closes every connection.
        let digest = digest(&files);
        if self.digest == Some(digest) {
            return Ok(Change::None);
        }
        let unusable = |error: KeyError| Unusable {
            message: format!("{}: {error}", list(paths)),
            is_set_without_keys: matches!(error, KeyError::NoSigningKey),
        };
        self.value = Some(parse(&files).map_err(unusable)?);
        self.digest = Some(digest);
        Ok(Change::Value)
    }

    /// Notes that the files on disk are the ones in force.
    fn settled(&mut self, change: Change) -> Change {
        change.max(if self.error.take().is_some() { Change::Error } else { Change::None })
    }

    /// Keeps the value in force and notes the error. The same error again does not count as a change.
    fn keep(&mut self, Unusable { message, .. }: Unusable) -> Change {
        let is_known = self.error.as_ref() == Some(&message);
        self.error = Some(message);
        if is_known { Change::None } else { Change::Error }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn digest(files: &[Vec<u8>]) -> FileDigest {
    let mut context = Context::new(&SHA256);
    for file in files {
        context.update(&file.len().to_be_bytes());
        context.update(file);
    }
    let mut digest = FileDigest::default();
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Unusable> {
    let read = |path: &PathBuf| {
        read_file(path).map_err(|error| {
            let path = path.display();
            let message = format!("{path} cannot be read: {error}; check the path and its mount");
            Unusable { message, is_set_without_keys: false }
        })
    };
    paths.iter().map(read).collect()
}

/// True if the file is gone or empty. Whoever mounts a file from a Secret or ConfigMap empties it
/// instead of removing it.
fn is_taken_away(path: &Path) -> bool {
    match read_file(path) {
        Ok(content) => content.trim_ascii().is_empty(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Opens a file, with a second attempt: the kubelet removes a generation right after it has swapped
/// in the next one, so the path is followed again.
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => File::open(path),
        opened => opened,
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let length = open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
    if length as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 1 MiB, so it is no key"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";

    /// How many keys are in force after the file has had each of these contents, one after another.
    fn in_force(parse: ParseKeys, contents: &[&str]) -> Vec<usize> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut loaded = Loaded::new(vec![file.path().to_owned()]);
        let mut count = |content: &&str| {
            std::fs::write(file.path(), content).unwrap();
            loaded.reread_keys(parse);
            assert_eq!(loaded.error.is_some(), loaded.digest.is_none() || *content == "{");
            loaded.value.as_ref().map_or(0, Vec::len)
        };
        contents.iter().map(&mut count).collect()
    }

    #[test] // proves ACCESS-10
    fn an_emptied_file_takes_its_keys_away_and_one_that_cannot_be_read_does_not() {
        let symmetric = r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#;
        let sets = [SET, "{", "", SET, r#"{"keys": []}"#, SET, symmetric, SET];
        assert_eq!(in_force(read_key_set, &sets), [1, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(in_force(read_public, &[PUBLIC, "{", " \n", PUBLIC]), [1, 1, 0, 1]);
        let secret = "0123456789abcdef0123456789abcdef";
        assert_eq!(in_force(read_shared, &[secret, "{", "", secret]), [1, 1, 0, 1]);
    }
}
