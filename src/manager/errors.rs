//! Present errors of the manager itself: one list, shown in the status and the metrics.
//!
//! An entry is a failed action that the manager retries and that does not concern the engine.
//! Errors of the mounted config have their own list, [`stayput_api::Config::errors`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use stayput_api::ManagerError;
use tokio::sync::watch;

/// Kind of failure. The name in snake case stands in the status and is the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// The API is not served: an address or a socket cannot be bound.
    Api,
    /// A key or certificate on disk cannot be used.
    KeyFiles,
    /// Changes of keys and certificates cannot be watched.
    KeyWatch,
    /// The served certificate has expired or will soon.
    Certificate,
    /// The config cannot be followed.
    ConfigWatch,
    /// A thread that the manager needs ended and was started again.
    Thread,
    /// The last attempt to execute another version of the manager has failed.
    Upgrade,
    /// The engine's temporary directory was not emptied before the last start.
    TempDir,
}

impl ErrorCode {
    /// Every code, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Api,
        Self::KeyFiles,
        Self::KeyWatch,
        Self::Certificate,
        Self::ConfigWatch,
        Self::Thread,
        Self::Upgrade,
        Self::TempDir,
    ];

    /// The code as it stands in status and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::KeyFiles => "key_files",
            Self::KeyWatch => "key_watch",
            Self::Certificate => "certificate",
            Self::ConfigWatch => "config_watch",
            Self::Thread => "thread",
            Self::Upgrade => "upgrade",
            Self::TempDir => "temp_dir",
        }
    }
}

/// The errors of the manager at present, at most one of each code. Cheap to clone; may be used from
/// any thread.
#[derive(Debug, Clone)]
pub struct Errors(Arc<watch::Sender<BTreeMap<ErrorCode, ManagerError>>>);

impl Default for Errors {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }
}

impl Errors {
    /// Shows an error and logs it, unless it is shown with the same message already.
    pub fn report(&self, code: ErrorCode, message: impl Into<String>) {
        let message = message.into();
        self.0.send_if_modified(|errors| {
            if errors.get(&code).is_some_and(|error| error.message == message) {
                return false;
            }
            tracing::error!(code = code.as_str(), "{message}");
            let now = || humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let since = errors.remove(&code).map_or_else(now, |error| error.since);
            errors.insert(code, ManagerError { code: code.as_str().to_owned(), message, since });
            true
        });
    }

    /// Removes an error: what failed works again. Nothing happens if it is not shown.
    pub fn resolve(&self, code: ErrorCode) {
        self.0.send_if_modified(|errors| {
            let resolved = errors.remove(&code).is_some();
            if resolved {
                tracing::info!(code = code.as_str(), "error cleared");
            }
            resolved
        });
    }

    /// All errors, sorted by code.
    pub fn list(&self) -> Vec<ManagerError> {
        self.0.borrow().values().cloned().collect()
    }

    /// Follows the errors: every change of them is a new value.
    pub(crate) fn subscribe(&self) -> watch::Receiver<BTreeMap<ErrorCode, ManagerError>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_until_it_is_over_and_keeps_its_beginning() {
        let errors = Errors::default();
        let mut changes = errors.subscribe();
        errors.report(ErrorCode::KeyFiles, "no such file");
        errors.report(ErrorCode::Api, "address in use");
        let listed = errors.list();
        assert_eq!(
            listed.iter().map(|error| error.code.as_str()).collect::<Vec<_>>(),
            ["api", "key_files"]
        );
        changes.mark_unchanged();
        errors.report(ErrorCode::Api, "address in use");
        assert!(!changes.has_changed().unwrap(), "the same error once more is no change");
        errors.report(ErrorCode::Api, "permission denied");
        assert!(changes.has_changed().unwrap());
        assert_eq!(errors.list()[0].since, listed[0].since);
        errors.resolve(ErrorCode::Api);
        assert_eq!(errors.list(), listed[1..]);
    }
}
