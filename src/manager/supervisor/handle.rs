//! How other modules reach the supervisor: requests to it, and its published status. Requests wait
//! here while another one is decided.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::Clock;
use crate::config_watch::ConfigWatch;
use crate::variables::VariablesFile;
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
    variables: Option<Arc<VariablesFile>>,
    clock: Clock,
}

impl Handle {
    pub(crate) fn new(
        calls: mpsc::Sender<Call>,
        status: watch::Receiver<Arc<Status>>,
        config: Option<Arc<ConfigWatch>>,
        variables: Option<Arc<VariablesFile>>,
        clock: Clock,
    ) -> Self {
        Self { calls, status, config, variables, clock }
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

    /// Looks up changes of config and variables that are not reported; to be called when somebody wants
    /// to know the status. The status changes if there is something new.
    pub fn refresh_files(&self) {
        if let Some(config) = &self.config {
            config.refresh();
        }
        if let Some(variables) = &self.variables {
            variables.refresh();
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

/// Largest number of requests that wait: a decision may take a minute, and clients that are gone
/// have left their requests here.
const MAX_WAITING: usize = 64;

/// A request, and the channel for its answer.
pub(super) struct WaitingRequest {
    pub(super) request: Control,
    pub(super) by: String,
    pub(super) reply: Reply,
}

impl WaitingRequest {
    /// Refuses the request: this manager does not decide about it any more, and its server waits
    /// for the answer.
    pub(super) fn refuse_while_another_takes_over(self) {
        self.refuse(
            Code::Unavailable,
            "another version of the manager is taking over: try again in a second",
        );
    }

    fn refuse(self, code: Code, message: &str) {
        // If the caller has closed its connection, only the answer is lost.
        let _ = self.reply.send(Err(Refusal::new(code, message)));
    }
}

/// The requests that wait, oldest first.
#[derive(Default)]
pub(super) struct WaitingRequests(VecDeque<WaitingRequest>);

impl WaitingRequests {
    /// Lets a request wait, or refuses it if too many do.
    pub(super) fn push(&mut self, request: WaitingRequest) {
        if self.0.len() < MAX_WAITING {
            self.0.push_back(request);
        } else {
            request.refuse(
                Code::TooManyWaiting,
                "too many requests wait until the manager has decided about one: try again in a \
                 second",
            );
        }
    }

    pub(super) fn pop(&mut self) -> Option<WaitingRequest> {
        self.0.pop_front()
    }

    /// Refuses all waiting requests.
    pub(super) fn refuse_while_another_takes_over(&mut self) {
        self.0.drain(..).for_each(WaitingRequest::refuse_while_another_takes_over);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends with a panic")]
mod tests {
    use tokio::sync::oneshot::{self, Receiver};

    use super::*;
    use stayput_api::Accepted;

    fn request() -> (WaitingRequest, Receiver<Result<Accepted, Refusal>>) {
        let (reply, answer) = oneshot::channel();
        (WaitingRequest { request: Control::Upgrade, by: String::new(), reply }, answer)
    }

    #[test] // proves STOP-15
    fn so_many_wait_and_the_others_are_refused_at_once() {
        let mut waiting = WaitingRequests::default();
        let mut answers: Vec<_> = (0..MAX_WAITING + 3)
            .map(|_| {
                let (request, answer) = request();
                waiting.push(request);
                answer
            })
            .collect();
        for mut refused in answers.split_off(MAX_WAITING) {
            let refusal = refused.try_recv().unwrap().unwrap_err();
            assert_eq!(refusal.code, Code::TooManyWaiting);
        }
        assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()), "they wait");
        drop(waiting.pop());
        let (request, mut last) = request();
        waiting.push(request);
        assert!(last.try_recv().is_err(), "there is a place again");
        waiting.refuse_while_another_takes_over();
        assert_eq!(last.try_recv().unwrap().unwrap_err().code, Code::Unavailable);
        assert!(waiting.pop().is_none());
    }
}
