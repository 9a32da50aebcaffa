//! The listener of the API, as it is handed over.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// A second descriptor of the listener. The server closes its own when it closes; clients that connect
/// then wait in the backlog, which is kept open by this one.
#[derive(Debug, Clone, Default)]
pub struct KeptListener(Arc<Mutex<Option<OwnedFd>>>);

impl KeptListener {
    /// Keeps a listener that is open already.
    pub fn of(listener: OwnedFd) -> Self {
        Self(Arc::new(Mutex::new(Some(listener))))
    }

    /// Keeps this listener. Without a free descriptor none is kept: then clients must connect again.
    pub fn keep(&self, listener: BorrowedFd<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listener.try_clone_to_owned().ok();
    }

    /// One more descriptor of the listener, if one is kept.
    ///
    /// # Errors
    /// There is no free descriptor.
    pub fn descriptor(&self) -> io::Result<Option<OwnedFd>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(OwnedFd::try_clone).transpose()
    }
}
