//! Keys and certificates, read from their files as one; a broken new file keeps the old one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::ServerConfig;

use super::auth::{Rules, Tokens, read};
use super::settings::HttpSettings;
use super::tls;

/// Larger files are not keys.
const MAX_FILE: u64 = 1024 * 1024;

/// What is in force.
#[derive(Debug)]
pub(super) struct Material {
    /// Absent without `--tls-cert`.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Judges tokens.
    pub(super) tokens: Arc<Tokens>,
    /// Why the files on disk are not what is in force; empty if they are.
    pub(super) errors: Vec<String>,
}

/// Makes a value of the contents of its files.
type Make<'a, T> = &'a dyn Fn(&[Vec<u8>]) -> Result<T, String>;
type ReadKeys = fn(&[u8]) -> Result<Vec<read::Key>, String>;

/// The files, and what was last read from them.
#[derive(Debug)]
pub(super) struct Files {
    rules: Rules,
    tls: Option<Part<Arc<ServerConfig>>>,
    keys: Vec<(Part<Vec<read::Key>>, ReadKeys)>,
    tokens: Arc<Tokens>,
}

#[derive(Debug)]
struct Part<T> {
    paths: Vec<PathBuf>,
    digest: Vec<u8>,
    value: T,
    error: Option<String>,
}

impl Files {
    /// Reads everything for the first time.
    ///
    /// # Errors
    /// One sentence for each file that cannot be used.
    pub(super) fn read(settings: &HttpSettings) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(cert), Some(key)) => {
                let paths = [cert, key].into_iter().chain(&settings.client_ca).cloned().collect();
                Part::read(paths, &server_config).map_err(|error| errors.push(error)).ok()
            }
            _ => None,
        };
        let sources: [(&Option<PathBuf>, ReadKeys); 3] = [
            (&settings.jwt_key, read::shared),
            (&settings.jwt_public_key, read::public),
            (&settings.jwks, read::key_set),
        ];
        let mut keys = Vec::new();
        for (path, read_keys) in sources {
            let Some(path) = path else { continue };
            match Part::read(vec![path.clone()], &one_file(read_keys)) {
                Ok(part) => keys.push((part, read_keys)),
                Err(error) => errors.push(error),
            }
        }
        let rules = settings.rules();
        let tokens = tokens(&keys, &rules);
        if errors.is_empty() { Ok(Self { rules, tls, keys, tokens }) } else { Err(errors) }
    }

    /// Reads again what changed. True if anything is different now, be it for better or worse.
    pub(super) fn reread(&mut self) -> bool {
        let tls = self.tls.as_mut().is_some_and(|part| part.reread(&server_config).is_different());
        let mut keys = Change::None;
        for (part, read_keys) in &mut self.keys {
            keys = keys.max(part.reread(&one_file(*read_keys)));
        }
        if keys == Change::Value {
            self.tokens = tokens(&self.keys, &self.rules);
        }
        tls || keys.is_different()
    }

    /// What is in force now.
    pub(super) fn material(&self) -> Material {
        let tls_error = self.tls.iter().filter_map(|part| part.error.clone());
        let key_errors = self.keys.iter().filter_map(|(part, _)| part.error.clone());
        Material {
            tls: self.tls.as_ref().map(|part| part.value.clone()),
            tokens: self.tokens.clone(),
            errors: tls_error.chain(key_errors).collect(),
        }
    }

    /// Every file.
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

fn tokens(keys: &[(Part<Vec<read::Key>>, ReadKeys)], rules: &Rules) -> Arc<Tokens> {
    let keys = keys.iter().flat_map(|(part, _)| part.value.iter().cloned()).collect();
    Arc::new(Tokens::new(keys, rules))
}

fn server_config(files: &[Vec<u8>]) -> Result<Arc<ServerConfig>, String> {
    match files {
        [cert, key, ca @ ..] => {
            tls::server_config(cert, key, ca.first().map(Vec::as_slice)).map(Arc::new)
        }
        _ => Err("certificate and key belong together".to_owned()),
    }
}

fn one_file(read_keys: ReadKeys) -> impl Fn(&[Vec<u8>]) -> Result<Vec<read::Key>, String> {
    move |files| read_keys(files.first().map_or(&[], Vec::as_slice))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Error,
    Value,
}

impl Change {
    fn is_different(self) -> bool {
        self != Self::None
    }
}

impl<T> Part<T> {
    fn read(paths: Vec<PathBuf>, make: Make<'_, T>) -> Result<Self, String> {
        let files = read_all(&paths)?;
        let value = make(&files).map_err(|error| named(&paths, &error))?;
        Ok(Self { digest: digest(&files), paths, value, error: None })
    }

    fn reread(&mut self, make: Make<'_, T>) -> Change {
        let files = match read_all(&self.paths) {
            Ok(files) => files,
            Err(error) => return self.keep(error),
        };
        // Compared by content: kubelet renews the directory also when nothing changed, and a new
        // TLS configuration would close every connection.
        let digest = digest(&files);
        if digest == self.digest {
            return if self.error.take().is_some() { Change::Error } else { Change::None };
        }
        match make(&files) {
            Ok(value) => {
                self.value = value;
                self.digest = digest;
                self.error = None;
                Change::Value
            }
            Err(error) => {
                let error = named(&self.paths, &error);
                self.keep(error)
            }
        }
    }

    fn keep(&mut self, error: String) -> Change {
        if self.error.as_ref() == Some(&error) {
            return Change::None;
        }
        self.error = Some(error);
        Change::Error
    }
}

fn named(paths: &[PathBuf], error: &str) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    format!("{}: {error}", names.join(", "))
}

fn digest(files: &[Vec<u8>]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for file in files {
        context.update(&file.len().to_be_bytes());
        context.update(file);
    }
    context.finish().as_ref().to_vec()
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let read = |path: &PathBuf| {
        read_file(path).map_err(|error| {
            format!("{} cannot be read: {error}; check the path and its mount", path.display())
        })
    };
    paths.iter().map(read).collect()
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let length = File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
    if length as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 1 MiB and no key"));
    }
    Ok(content)
}
