//! Serves the API, and closes it while another version of the manager is about to take over.

use tokio::sync::watch;
use tokio::time::sleep;

use super::fallback::RETRY_DELAY;
use crate::errors::{ErrorCode, Errors};
use crate::http::{HttpSettings, KeptPair, Limits, Server};
use crate::process::KeptListener;
use crate::supervisor::{Handle, Serving};

/// Settings, listener and certificate for serving the API again after a failed takeover.
pub(super) struct Again {
    pub(super) settings: HttpSettings,
    pub(super) listener: KeptListener,
    pub(super) kept_pair: Option<KeptPair>,
}

/// Serves until the manager ends.
pub(super) async fn serve(
    mut server: Server,
    again: Again,
    handle: Handle,
    errors: Errors,
    mut serving: watch::Receiver<Serving>,
) {
    // Clients that connect earlier wait in the backlog: before the journal is read, the status would
    // be that of a new pod. If there is no reply, the supervisor has ended, and so does the manager.
    handle.answers().await;
    loop {
        let mut closing = serving.clone();
        let closed = async move {
            // An error if the manager ends.
            let _ = closing.wait_for(|serving| *serving != Serving::Open).await;
        };
        server.serve(handle.clone(), errors.clone(), closed).await;
        if !reopens(&handle, &mut serving).await {
            return;
        }
        server = again.bound(&errors).await;
    }
}

impl Again {
    /// Binds the API, and retries until it works: the pids limit may leave no thread for it now.
    async fn bound(&self, errors: &Errors) -> Server {
        loop {
            let (settings, listener) = (self.settings.clone(), self.listener.clone());
            let kept_pair = self.kept_pair.clone();
            match Server::bind(settings, Limits::default(), errors, listener, kept_pair).await {
                Ok(server) => return server,
                Err(problems) => errors.report(ErrorCode::Api, problems.join("; ")),
            }
            sleep(RETRY_DELAY).await;
        }
    }
}

/// Reports that all connections are closed, and waits. True if the API is to be served again,
/// because nothing has taken over.
async fn reopens(handle: &Handle, serving: &mut watch::Receiver<Serving>) -> bool {
    handle.server_closed().await;
    let next = serving.wait_for(|serving| *serving != Serving::Closed).await;
    next.is_ok_and(|serving| *serving == Serving::Open)
}
