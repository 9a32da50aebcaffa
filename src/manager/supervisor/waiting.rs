//! Requests that wait while the manager decides about another one.

use std::collections::VecDeque;

use super::handle::{Control, Reply};
use stayput_api::{Code, Refusal};

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
