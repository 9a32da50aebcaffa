//! How other modules reach the supervisor: requests to it, and its published status.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::config_watch::ConfigWatch;
use stayput_api::{Accepted, Code, DrainRequest, Refusal, StartRequest, Status, StopRequest};

pub(super) type Reply = oneshot::Sender<Result<Accepted, Refusal>>;

/// A request to the supervisor.
#[derive(Debug)]
pub(crate) enum Call {
    Stop {
        request: StopRequest,
        by: String,
        reply: Reply,
    },
    Start {
        request: StartRequest,
        by: String,
        reply: Reply,
    },
    Drain {
        request: DrainRequest,
        reply: Reply,
    },
    /// Execute another version of the manager.
    Upgrade {
        reply: Reply,
    },
    /// All connections are closed.
    ServerClosed,
    /// Run the readiness probe now, unless it ran within the last second.
    Probe {
        reply: oneshot::Sender<()>,
    },
    /// Answered by the loop itself: it proves that the loop runs.
    Ping {
        reply: oneshot::Sender<()>,
    },
}

/// A cheap, cloneable handle on the supervisor.
#[derive(Debug, Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    status: watch::Receiver<Arc<Status>>,
    config: Option<Arc<ConfigWatch>>,
}

impl Handle {
    pub(crate) fn new(
        calls: mpsc::Sender<Call>,
        status: watch::Receiver<Arc<Status>>,
        config: Option<Arc<ConfigWatch>>,
    ) -> Self {
        Self { calls, status, config }
    }

    /// Requests a stop on behalf of `by`.
    ///
    /// # Errors
    /// The refusal, with [`Code::Unavailable`] if the supervisor has ended.
    pub async fn stop(&self, request: StopRequest, by: String) -> Result<Accepted, Refusal> {
        self.ask(|reply| Call::Stop { request, by, reply }).await.unwrap_or_else(unavailable)
    }

    /// Requests a start on behalf of `by`.
    ///
    /// # Errors
    /// The refusal, with [`Code::Unavailable`] if the supervisor has ended.
    pub async fn start(&self, request: StartRequest, by: String) -> Result<Accepted, Refusal> {
        self.ask(|reply| Call::Start { request, by, reply }).await.unwrap_or_else(unavailable)
    }

    /// Requests a drain ahead of a stop.
    ///
    /// # Errors
    /// The refusal, with [`Code::Unavailable`] if the supervisor has ended.
    pub async fn drain(&self, request: DrainRequest) -> Result<Accepted, Refusal> {
        self.ask(|reply| Call::Drain { request, reply }).await.unwrap_or_else(unavailable)
    }

    /// Requests that another version of the manager takes over.
    ///
    /// # Errors
    /// The refusal, with [`Code::Unavailable`] if the supervisor has ended.
    pub async fn upgrade(&self) -> Result<Accepted, Refusal> {
        self.ask(|reply| Call::Upgrade { reply }).await.unwrap_or_else(unavailable)
    }

    /// The server has closed all connections.
    pub async fn server_closed(&self) {
        // A supervisor that has ended needs not know it.
        let _ = self.calls.send(Call::ServerClosed).await;
    }

    /// Somebody wants to know the status: what nobody tells about the config is looked up. The
    /// status changes if there is something new.
    pub fn refresh_config(&self) {
        if let Some(config) = &self.config {
            config.refresh();
        }
    }

    /// The last published status.
    pub fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }

    /// The status after the readiness probe ran, which it does at most once a second.
    pub async fn fresh_status(&self) -> Arc<Status> {
        // A supervisor that has ended leaves its last status: there is nothing newer.
        self.ask(|reply| Call::Probe { reply }).await;
        self.status()
    }

    /// Follows the status: every change of it is a new value.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// Whether the supervisor's loop runs. Does not return while it hangs: give it a timeout.
    pub async fn answers(&self) -> bool {
        self.ask(|reply| Call::Ping { reply }).await.is_some()
    }

    async fn ask<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> Call) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.calls.send(call(reply)).await.ok()?;
        answer.await.ok()
    }
}

fn unavailable() -> Result<Accepted, Refusal> {
    Err(Refusal::new(Code::Unavailable, "the manager is ending and takes no more requests"))
}
