//! How other modules reach the supervisor: requests to it, and its published status.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::clock::Clock;
use crate::config_watch::ConfigWatch;
use stayput_api::{Accepted, Code, DrainRequest, Refusal, StartRequest, Status, StopRequest};

pub(super) type Reply = oneshot::Sender<Result<Accepted, Refusal>>;

/// Request of a caller with the scope `es:control`.
#[derive(Debug, Clone)]
pub enum Control {
    /// Stop the engine.
    Stop(StopRequest),
    /// Start the engine.
    Start(StartRequest),
    /// Be not ready ahead of a stop.
    Drain(DrainRequest),
    /// Execute another version of the manager.
    Upgrade,
}

impl Control {
    /// Name as in the route.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stop(_) => "stop",
            Self::Start(_) => "start",
            Self::Drain(_) => "drain",
            Self::Upgrade => "upgrade",
        }
    }

    /// The sequence that the request was sent with.
    pub const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Stop(request) => request.sequence,
            Self::Start(request) => request.sequence,
            Self::Drain(request) => request.sequence,
            Self::Upgrade => None,
        }
    }
}

/// A request to the supervisor.
#[derive(Debug)]
pub(crate) enum Call {
    Control {
        request: Control,
        by: String,
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
    clock: Clock,
}

impl Handle {
    pub(crate) fn new(
        calls: mpsc::Sender<Call>,
        status: watch::Receiver<Arc<Status>>,
        config: Option<Arc<ConfigWatch>>,
        clock: Clock,
    ) -> Self {
        Self { calls, status, config, clock }
    }

    /// Requests something on behalf of `by`.
    ///
    /// # Errors
    /// The refusal, with [`Code::Unavailable`] if the supervisor has ended.
    pub async fn control(&self, request: Control, by: String) -> Result<Accepted, Refusal> {
        self.ask(|reply| Call::Control { request, by, reply }).await.unwrap_or_else(unavailable)
    }

    /// Tells the supervisor that the server has closed all connections.
    pub async fn server_closed(&self) {
        // A supervisor that has ended needs not know it.
        let _ = self.calls.send(Call::ServerClosed).await;
    }

    /// Looks up changes of the config that are not reported; to be called when somebody wants to
    /// know the status. The status changes if there is something new.
    pub fn refresh_config(&self) {
        if let Some(config) = &self.config {
            config.refresh();
        }
    }

    /// Milliseconds by which the clock of the status is ahead of the time of day.
    pub fn times_ahead(&self) -> i64 {
        self.clock.ahead()
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

    /// True if the supervisor's loop runs. Does not return while it hangs: give it a timeout.
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
