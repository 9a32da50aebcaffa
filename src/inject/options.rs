//! Options of `inject`.

use stayput_pod_spec::{Authority, Login, Source};

/// Options of `inject`; each has a default, or is found in the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Image of the manager; by default that of this version.
    pub image: Option<String>,
    /// The entrypoint of the engine's image, with its arguments; empty to find it. Beside other engines
    /// it counts only where theirs is not known.
    pub command: Vec<String>,
    /// Objects that are left as they are: kind and name, as in `StatefulSet/logs`.
    pub skip: Vec<String>,
    /// Name of the engine's container.
    pub container: Option<String>,
    /// Name of the cluster, in the names of its Secrets; by default that of the object.
    pub cluster: Option<String>,
    /// URL that answers when the engine is ready, as `stayput run --ready` takes it.
    pub ready: Option<String>,
    /// Login with which the manager asks the engine if it is ready.
    pub ready_auth: Option<Login>,
    /// CA of the engine that the manager asks.
    pub ready_ca: Option<Authority>,
    /// Source of the engine's config files.
    pub config: Option<ConfigSource>,
    /// True to create an archive of the engine's classes in each pod before its first start.
    pub warm: bool,
    /// True if the manager serves its metrics without credentials.
    pub open_metrics: bool,
    /// True if the cluster gives each pod its user, as OpenShift does.
    pub assigned_user: bool,
}

impl Options {
    pub(crate) fn image(&self) -> String {
        let default = || format!("stayput/manager:{}", env!("CARGO_PKG_VERSION"));
        self.image.clone().unwrap_or_else(default)
    }
}

/// Source of the engine's config files, and the directory for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// Object that has the files.
    pub source: Source,
    /// Directory where the engine reads them, unless the image is known.
    pub directory: Option<String>,
}

impl ConfigSource {
    /// Reads `secret/NAME` or `configmap/NAME`, or these with `=/DIRECTORY`.
    ///
    /// # Errors
    /// The form to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (source, directory) = match text.split_once('=') {
            Some((source, directory)) => (source, Some(directory)),
            None => (text, None),
        };
        if directory.is_some_and(|path| plain(path).is_empty() || !path.starts_with('/')) {
            return Err(
                "write the directory from the root on: configmap/NAME=/DIRECTORY".to_owned()
            );
        }
        Ok(Self { source: Source::parse(source)?, directory: directory.map(plain) })
    }
}

/// A path without a slash at its end, and without empty parts and `.`, so that equal places have equal
/// texts. The root is empty.
pub(crate) fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.map(|part| format!("/{part}")).collect()
}

/// True if a plain path is this plain directory, or below it.
pub(crate) fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
