//! What can go wrong between asking and having an answer.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use hyper::body::Bytes;
use thiserror::Error;

use crate::https::{ExchangeError, Target};
use stayput_api::Problem;

/// Why there is no good answer. Each variant tells whether the request can have had an effect.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Our own side: an address, CA, certificate, key or token that cannot be used. Nothing was
    /// sent.
    #[error("{0}")]
    Credentials(String),
    /// No connection to the manager. Nothing was sent.
    #[error("{0}")]
    NotReachable(String),
    /// Somebody is there, whose certificate is not trusted. Nothing was sent.
    #[error("{0}")]
    Untrusted(String),
    /// The request was sent and no whole answer came: it may have had its effect. Asking again
    /// with the same sequence is safe.
    #[error("{0}")]
    Unanswered(String),
    /// The manager refused, or what was asked for failed.
    #[error("{0}")]
    Refused(Refused),
    /// The answer of another pod's manager than the one that was asked for. A request that carried
    /// the pod had no effect there.
    #[error("{0}")]
    WrongPod(String),
    /// An answer that no manager gives: something else listens there, or it is too new for us.
    #[error("{0}")]
    Protocol(String),
}

/// A refusal, as the manager told it.
#[derive(Debug, Error)]
#[error("{} ({}, HTTP {})", problem.detail, problem.code.as_str(), problem.status)]
pub struct Refused {
    /// The problem document; boxed because it can hold a whole status.
    pub problem: Box<Problem>,
    /// The answer's body, byte for byte.
    pub body: Bytes,
}

impl ClientError {
    /// What it means that the manager at `target` did not answer.
    pub(super) fn of_exchange(error: ExchangeError, target: &Target) -> Self {
        match error {
            ExchangeError::Untrusted(sentence) => Self::Untrusted(format!(
                "cannot trust the certificate of the manager at {target}: {sentence}"
            )),
            ExchangeError::NotConnected(error) => Self::NotReachable(format!(
                "cannot reach the manager at {target}: {error}{}",
                hint(&error, target.socket_path())
            )),
            ExchangeError::Unanswered(sentence) => Self::Unanswered(format!(
                "{sentence}; whether the manager at {target} acted on the request is not known: \
                 look at its status"
            )),
        }
    }
}

/// What may be the matter with a connection that did not come about.
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
            "; the manager that made this socket is gone"
        }
        (Some(_), io::ErrorKind::PermissionDenied) => "; be root or the manager's user",
        (None, io::ErrorKind::ConnectionRefused) => {
            "; does a manager run there with --listen, and is this its port?"
        }
        // rustls reports what it does not accept as invalid data, in words that need no more.
        (Some(_) | None, _) => "",
    }
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}
