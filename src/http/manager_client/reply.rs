//! From an HTTP response to an answer, or to the reason why there is none.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde::Deserialize;
use thiserror::Error;

use super::Answer;
use crate::https::{self, ExchangeError, NoAnswer, Target};
use crate::shorten;
use stayput_api::{Problem, SEQUENCE_HEADER, Status, TIMES_AHEAD_HEADER};

/// Longest text, in characters, of an answer that is not understood; longer ones are shortened in messages.
const MAX_TEXT_CHARS: usize = 400;
/// Longest detail of a problem in characters; longer ones are shortened: some quote the end of the
/// engine's log.
const MAX_DETAIL_CHARS: usize = 4_000;
/// Number of errors that are kept of each list of a status: no manager has more, and an empty one
/// takes less room in an answer than in memory.
const MAX_ERRORS: usize = 100;

/// A response whose body has not been parsed.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    content_type: String,
    date: Option<u64>,
    sequence: Option<u64>,
    times_ahead: Option<i64>,
    body: Bytes,
    manager: String,
}

impl Reply {
    /// A response that is not parsed yet. `manager` is the manager's address, for messages.
    pub(super) fn new(response: Response<Bytes>, manager: String) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or("no content type").to_owned();
        let date = https::answer_time(&head.headers);
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let sequence = text(SEQUENCE_HEADER).and_then(|sequence| sequence.parse().ok());
        let times_ahead = text(TIMES_AHEAD_HEADER).and_then(|ahead| ahead.parse().ok());
        Self { status: head.status, content_type, date, sequence, times_ahead, body, manager }
    }

    /// Returns the answer if it is a good one.
    pub(super) fn into_answer(self) -> Result<Answer, ClientError> {
        if self.status != StatusCode::OK && self.status != StatusCode::ACCEPTED {
            return Err(self.into_error());
        }
        match serde_json::from_slice(&self.body) {
            Ok(mut status) => {
                bound(&mut status);
                let (done, date) = (self.status == StatusCode::OK, self.date);
                let Self { sequence, times_ahead, body, .. } = self;
                Ok(Answer { done, sequence, status, body, date, times_ahead })
            }
            Err(error) => Err(self.unknown(format!("no status we know: {error}"))),
        }
    }

    fn into_error(self) -> ClientError {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(mut problem) => {
                shorten(&mut problem.detail, MAX_DETAIL_CHARS);
                problem.current.as_deref_mut().into_iter().for_each(bound);
                let (problem, date) = (Box::new(problem), self.date);
                Refused { problem, body: self.body, date }.into()
            }
            Err(_) => {
                let answer = unknown_problem(&self.body).unwrap_or(self.content_type.clone());
                self.unknown(answer)
            }
        }
    }

    /// The error for an answer that is not understood. The parser's own error is part of `answer`:
    /// it may quote all of the body.
    fn unknown(self, mut answer: String) -> ClientError {
        shorten(&mut answer, MAX_TEXT_CHARS);
        let (manager, status) = (self.manager, self.status.as_u16());
        ClientError::Protocol(format!(
            "{manager} answered HTTP {status} with {answer}: is it a stayput manager, and not a newer \
             one than this client?"
        ))
    }
}

/// Cuts a status to the size that a manager's own has.
fn bound(status: &mut Status) {
    let errors = &mut status.manager.errors;
    errors.truncate(MAX_ERRORS);
    errors.shrink_to_fit();
    if let Some(config) = &mut status.config {
        config.errors.truncate(MAX_ERRORS);
        config.errors.shrink_to_fit();
        config.files.shrink_to_fit();
        config.run_files.iter_mut().for_each(Vec::shrink_to_fit);
    }
}

/// Code and detail of a problem whose code this version does not know.
fn unknown_problem(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Unknown {
        code: String,
        detail: String,
    }
    let Unknown { code, detail } = serde_json::from_slice(body).ok()?;
    Some(format!("{code}: {detail}"))
}

/// Makes a text safe inside a query value. Colons stay: cursors have them, and a query may.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Why there is no good answer: a whole message each. The variant says whether the request can have
/// had an effect.
#[derive(Debug, Error)]
pub enum ClientError {
    /// An address, CA, certificate, key or token of the client cannot be used. Nothing was sent.
    #[error("{0}")]
    Credentials(String),
    /// No connection to the manager. Nothing was sent.
    #[error("{0}")]
    NotReachable(String),
    /// A server answered whose certificate is not trusted. Nothing was sent.
    #[error("{0}")]
    Untrusted(String),
    /// The request was sent and no whole answer came: it may have had its effect. Sending it again
    /// with the same sequence is safe.
    #[error("{0}")]
    Unanswered(String),
    /// The manager refused, or what was requested failed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The answer comes from the manager of another pod. If the request named the pod, it had no
    /// effect there.
    #[error("{0}")]
    WrongPod(String),
    /// Not the answer of a manager of this version: from another program, or from a newer manager.
    #[error("{0}")]
    Protocol(String),
}

/// A refusal, as the manager sent it.
#[derive(Debug, Error)]
#[error("{} ({}, HTTP {})", problem.detail, problem.code.as_str(), problem.status)]
pub struct Refused {
    /// The problem document; boxed because it can hold a whole status.
    pub problem: Box<Problem>,
    /// The answer's body, byte for byte.
    pub body: Bytes,
    /// Time by the manager's clock, in seconds since 1970.
    pub date: Option<u64>,
}

impl ClientError {
    /// The error for a request that the manager at `target` did not answer.
    pub(super) fn of_exchange(error: ExchangeError, target: &Target) -> Self {
        match error {
            ExchangeError::Untrusted(fault) => Self::Untrusted(format!(
                "cannot trust the certificate of the manager at {target}: {fault}"
            )),
            ExchangeError::NotConnected(error) => {
                let hint = hint(&error, target.socket_path());
                Self::NotReachable(format!("cannot reach the manager at {target}: {error}{hint}"))
            }
            ExchangeError::Unanswered(why) => Self::Unanswered(format!(
                "{why}; the manager at {target} may have acted on the request: check its status"
            )),
        }
    }

    /// The error for a call that was dropped because it took longer than `deadline`.
    pub fn late(deadline: Duration) -> Self {
        let why = NoAnswer::Timeout(deadline);
        Self::Unanswered(format!(
            "{why}; the manager may have acted on the request: check its status"
        ))
    }
}

/// The likely cause of a failed connection.
fn hint(error: &io::Error, socket: Option<&Path>) -> &'static str {
    match (socket, error.kind()) {
        (Some(path), io::ErrorKind::ConnectionRefused) if !is_socket(path) => {
            "; this is no socket: give the path that the manager has as --socket"
        }
        (Some(_), io::ErrorKind::NotFound) => {
            "; does a manager run here with --socket, and is this its path \
             (--socket, STAYPUT_SOCKET)?"
        }
        (Some(_), io::ErrorKind::ConnectionRefused) => {
            "; the manager that made this socket has ended"
        }
        (Some(_), io::ErrorKind::PermissionDenied) => "; be root or the manager's user",
        (None, io::ErrorKind::ConnectionRefused) => {
            "; does a manager run there with --listen, and is this its port?"
        }
        // Invalid data means that rustls refused something; its message is clear enough.
        (Some(_) | None, _) => "",
    }
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_would_change_the_query() {
        assert_eq!(escape("b7f1:17"), "b7f1:17");
        assert_eq!(escape("a&b=c d\n"), "a%26b%3Dc%20d%0A");
    }

    #[test]
    fn a_refusal_says_what_the_clock_said() {
        let problem = Problem::new(stayput_api::Code::Unauthenticated, "no");
        let body = Bytes::from(serde_json::to_vec(&problem).unwrap());
        let date = |date: &'static str| {
            let response = Response::builder().status(401).header("date", date);
            let response = response.body(body.clone()).unwrap();
            match Reply::new(response, "m".to_owned()).into_answer() {
                Err(ClientError::Refused(refused)) => refused.date,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(date("Mon, 23 Nov 2026 05:00:07 GMT"), Some(1_795_410_007));
        assert_eq!(date("yesterday"), None);
    }

    #[test]
    fn a_status_with_words_of_a_newer_manager_is_a_status() {
        let status = include_str!("../../../proto/samples/status-stopped.json");
        let mut status: serde_json::Value = serde_json::from_str(status).unwrap();
        assert!(status["last_exit"].is_object() && status["last_request"].is_object());
        status["last_exit"]["reason"] = "evicted".into();
        status["last_request"]["kind"] = "replace".into();
        status["later"] = serde_json::json!({"much": "later"});
        let response = Response::builder().header("stayput-times-ahead", "-250");
        let response = response.body(Bytes::from(status.to_string())).unwrap();
        let answer = Reply::new(response, "m".to_owned()).into_answer().unwrap();
        let (exit, last) = (answer.status.last_exit.unwrap(), answer.status.last_request.unwrap());
        assert_eq!(answer.times_ahead, Some(-250));
        assert_eq!(exit.reason, stayput_api::ExitReason::Unknown);
        assert_eq!(last.kind, stayput_api::RequestKind::Unknown);
    }

    fn refused_with(status: u16, body: &str) -> ClientError {
        let response = Response::builder().status(status);
        let response = response.body(Bytes::from(body.to_owned())).unwrap();
        Reply::new(response, "m".to_owned()).into_answer().unwrap_err()
    }

    #[test] // proves RESTART-15
    fn no_answer_makes_a_long_message() {
        let long = "x".repeat(100_000);
        let bodies = [
            (503, format!(r#"{{"code":"moon_phase","detail":"{long}"}}"#)),
            (
                409,
                format!(
                    r#"{{"type":"","title":"","status":409,"code":"stuck","detail":"{long}"}}"#
                ),
            ),
            (200, format!(r#"{{"manager":"{long}"}}"#)),
        ];
        for (status, body) in bodies {
            let message = refused_with(status, &body).to_string();
            assert!(message.contains("xxx") && message.len() < 5_000, "{}", message.len());
        }
    }

    #[test] // proves RESTART-15
    fn no_more_errors_are_kept_than_a_manager_has() {
        let status = include_str!("../../../proto/samples/status-stopped.json");
        let mut status: serde_json::Value = serde_json::from_str(status).unwrap();
        let error = serde_json::json!({"code": "", "message": "", "since": ""});
        status["manager"]["errors"] = vec![error; 1_000].into();
        status["config"]["errors"] = vec![""; 1_000].into();
        let response = Response::new(Bytes::from(status.to_string()));
        let status = Reply::new(response, "m".to_owned()).into_answer().unwrap().status;
        assert_eq!(status.manager.errors.len(), MAX_ERRORS);
        assert_eq!(status.config.unwrap().errors.len(), MAX_ERRORS);
    }

    #[test]
    fn tells_a_problem_of_a_newer_manager() {
        let body = br#"{"code":"moon_phase","detail":"wait for the full moon","status":409}"#;
        assert_eq!(unknown_problem(body), Some("moon_phase: wait for the full moon".into()));
        assert_eq!(unknown_problem(b"<html>"), None);
    }
}
