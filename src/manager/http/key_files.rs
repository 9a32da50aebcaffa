//! Reads keys and certificates from their files as one value. If a new file cannot be used, the old
//! value stays in force.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::ServerConfig;
use thiserror::Error;

use super::auth::{Rules, Tokens, read};
use super::settings::HttpSettings;
use super::tls::{self, TlsConfigError, TlsMin};

/// In bytes. No key file is larger.
const MAX_FILE: u64 = 1024 * 1024;

/// The keys and certificates in force.
#[derive(Debug)]
pub(super) struct Keys {
    /// Absent without `--tls-cert`.
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) tokens: Arc<Tokens>,
    /// False if a file on disk is not the one in force, or is no longer watched.
    pub(super) is_current: bool,
}

/// Why key files cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    #[error("{} cannot be read: {source}; check the path and its mount", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: {source}", list(paths))]
    Unusable { paths: Vec<PathBuf>, source: ContentError },
}

/// What is wrong with the content of key files.
#[derive(Debug, Error)]
pub enum ContentError {
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    #[error(transparent)]
    Key(#[from] read::KeyError),
    #[error("certificate and key belong together")]
    NoPair,
}

/// Makes a value from the contents of its files.
type Parse<'a, T> = &'a dyn Fn(&[Vec<u8>]) -> Result<T, ContentError>;
type ParseKeys = fn(&[u8]) -> Result<Vec<read::Key>, read::KeyError>;

/// The files, and what was last read from them.
#[derive(Debug)]
pub(super) struct KeyFiles {
    rules: Rules,
    tls_min: TlsMin,
    tls: Option<Loaded<Arc<ServerConfig>>>,
    keys: Vec<(Loaded<Vec<read::Key>>, ParseKeys)>,
    tokens: Arc<Tokens>,
}

/// The value in force of one or more files, and why newer files cannot replace it.
#[derive(Debug)]
struct Loaded<T> {
    paths: Vec<PathBuf>,
    digest: Vec<u8>,
    value: T,
    error: Option<KeyFileError>,
}

impl KeyFiles {
    /// Reads all files for the first time.
    ///
    /// # Errors
    /// One for each file that cannot be used.
    pub(super) fn read(settings: &HttpSettings) -> Result<Self, Vec<KeyFileError>> {
        let mut errors = Vec::new();
        let tls_min = settings.tls_min.unwrap_or_default();
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(cert), Some(key)) => {
                let paths = [cert, key].into_iter().chain(&settings.client_ca).cloned().collect();
                let parse = server_config(tls_min);
                Loaded::read(paths, &parse).map_err(|error| errors.push(error)).ok()
            }
            _ => None,
        };
        let sources: [(&Option<PathBuf>, ParseKeys); 3] = [
            (&settings.jwt_key, read::shared),
            (&settings.jwt_public_key, read::public),
            (&settings.jwks, read::key_set),
        ];
        let mut keys = Vec::new();
        for (path, parse) in sources {
            let Some(path) = path else { continue };
            match Loaded::read(vec![path.clone()], &one_file(parse)) {
                Ok(loaded) => keys.push((loaded, parse)),
                Err(error) => errors.push(error),
            }
        }
        let rules = settings.rules();
        let tokens = tokens(&keys, &rules);
        if errors.is_empty() { Ok(Self { rules, tls_min, tls, keys, tokens }) } else { Err(errors) }
    }

    /// Reads changed files again. True if a value or an error is different now.
    pub(super) fn reread(&mut self) -> bool {
        let parse = server_config(self.tls_min);
        let tls = self.tls.as_mut().map_or(Change::None, |loaded| loaded.reread(&parse));
        let mut keys = Change::None;
        for (loaded, parse) in &mut self.keys {
            keys = keys.max(loaded.reread(&one_file(*parse)));
        }
        if keys == Change::Value {
            self.tokens = tokens(&self.keys, &self.rules);
        }
        tls.max(keys) != Change::None
    }

    /// The value in force.
    pub(super) fn keys(&self) -> Keys {
        Keys {
            tls: self.tls.as_ref().map(|loaded| loaded.value.clone()),
            tokens: self.tokens.clone(),
            is_current: self.errors().next().is_none(),
        }
    }

    /// Why files on disk are not in force.
    pub(super) fn errors(&self) -> impl Iterator<Item = &KeyFileError> {
        let tls = self.tls.iter().filter_map(|loaded| loaded.error.as_ref());
        tls.chain(self.keys.iter().filter_map(|(loaded, _)| loaded.error.as_ref()))
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

fn tokens(keys: &[(Loaded<Vec<read::Key>>, ParseKeys)], rules: &Rules) -> Arc<Tokens> {
    let keys = keys.iter().flat_map(|(loaded, _)| loaded.value.iter().cloned()).collect();
    Arc::new(Tokens::new(keys, rules))
}

fn server_config(min: TlsMin) -> impl Fn(&[Vec<u8>]) -> Result<Arc<ServerConfig>, ContentError> {
    move |files| match files {
        [cert, key, ca @ ..] => {
            Ok(Arc::new(tls::server_config(cert, key, ca.first().map(Vec::as_slice), min)?))
        }
        _ => Err(ContentError::NoPair),
    }
}

fn one_file(parse: ParseKeys) -> impl Fn(&[Vec<u8>]) -> Result<Vec<read::Key>, ContentError> {
    move |files| Ok(parse(files.first().map_or(&[], Vec::as_slice))?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Error,
    Value,
}

impl<T> Loaded<T> {
    fn read(paths: Vec<PathBuf>, parse: Parse<'_, T>) -> Result<Self, KeyFileError> {
        let files = read_all(&paths)?;
        match parse(&files) {
            Ok(value) => Ok(Self { digest: digest(&files), paths, value, error: None }),
            Err(source) => Err(KeyFileError::Unusable { paths, source }),
        }
    }

    fn reread(&mut self, parse: Parse<'_, T>) -> Change {
        let files = match read_all(&self.paths) {
            Ok(files) => files,
            Err(error) => return self.keep(error),
        };
        // Compared by content: the kubelet replaces the directory also when nothing changed, and a
        // new TLS configuration closes every connection.
        let digest = digest(&files);
        if digest == self.digest {
            return if self.error.take().is_some() { Change::Error } else { Change::None };
        }
        match parse(&files) {
            Ok(value) => {
                self.value = value;
                self.digest = digest;
                self.error = None;
                Change::Value
            }
            Err(source) => self.keep(KeyFileError::Unusable { paths: self.paths.clone(), source }),
        }
    }

    /// Keeps the value in force. The same error again does not count as a change, so it is logged
    /// once.
    fn keep(&mut self, error: KeyFileError) -> Change {
        if self.error.as_ref().is_some_and(|last| last.to_string() == error.to_string()) {
            return Change::None;
        }
        self.error = Some(error);
        Change::Error
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

fn digest(files: &[Vec<u8>]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for file in files {
        context.update(&file.len().to_be_bytes());
        context.update(file);
    }
    context.finish().as_ref().to_vec()
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, KeyFileError> {
    let read = |path: &PathBuf| {
        read_file(path).map_err(|source| KeyFileError::Unreadable { path: path.clone(), source })
    };
    paths.iter().map(read).collect()
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let length = File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
    if length as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 1 MiB, so it is no key"));
    }
    Ok(content)
}
