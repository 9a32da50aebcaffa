//! Why a call has no good answer.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use hyper::body::Bytes;
use thiserror::Error;

use super::address::AddressError;
use super::token::TokenError;
use crate::https::{ExchangeError, NoAnswer, Target, UntrustedCertificate};
use stayput_api::Problem;

/// Why there is no good answer. Each variant says whether the request can have had an effect.
#[derive(Debug, Error)]
pub enum ClientError {
    /// An address, CA, certificate, key or token of the client cannot be used. Nothing was sent.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// No connection to the manager. Nothing was sent.
    #[error(transparent)]
    NotReachable(#[from] NotReachable),
    /// A server answered whose certificate is not trusted. Nothing was sent.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The request was sent and no whole answer came: it may have had its effect. Sending it again
    /// with the same sequence is safe.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The manager refused, or what was requested failed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The answer comes from the manager of another pod. If the request named the pod, it had no
    /// effect there.
    #[error(transparent)]
    WrongPod(#[from] WrongPod),
    /// Not the answer of a manager of this version: from another program, or from a newer manager.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// An address or a credential that the client was given and cannot use.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// The address, or a credential that belongs to it.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// The manager cannot be connected to.
#[derive(Debug, Error)]
#[error("cannot reach the manager at {manager}: {source}{hint}")]
pub struct NotReachable {
    manager: String,
    hint: &'static str,
    source: io::Error,
}

impl NotReachable {
    /// `source` is why `manager` cannot be connected to; a likely cause is added to the message.
    pub fn new(manager: &Target, source: io::Error) -> Self {
        let hint = hint(&source, manager.socket_path());
        Self { manager: manager.to_string(), hint, source }
    }
}

/// The certificate of the server is not trusted.
#[derive(Debug, Error)]
#[error("cannot trust the certificate of the manager at {manager}: {source}")]
pub struct Untrusted {
    /// The manager's address.
    pub manager: String,
    /// The fault of the manager's certificate.
    pub source: UntrustedCertificate,
}

/// A request was sent, and there is no answer to it.
#[derive(Debug, Error)]
#[error(
    "{source}; the manager{} may have acted on the request: check its status",
    manager.as_ref().map(|manager| format!(" at {manager}")).unwrap_or_default()
)]
pub struct Unanswered {
    /// The manager's address, if that is known.
    pub manager: Option<String>,
    /// Why the answer did not arrive.
    pub source: NoAnswer,
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

/// The pod of the manager that answered is another one, or is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongPod {
    /// Another pod.
    #[error(
        "the manager at {manager} belongs to the pod with uid {found}, not {wanted}: was the pod \
         replaced, or its address given to another?"
    )]
    Other {
        /// The manager's address.
        manager: String,
        /// The uid that the manager reports.
        found: String,
        /// The uid that was meant.
        wanted: String,
    },
    /// A manager without the pod's uid.
    #[error(
        "the manager at {manager} does not know its pod, so it is not certain that it is {wanted}: \
         give it STAYPUT_POD_UID from the downward API"
    )]
    Unknown {
        /// The manager's address.
        manager: String,
        /// The uid that was meant.
        wanted: String,
    },
}

/// An answer that no manager of the same version gives.
#[derive(Debug, Error)]
pub enum ProtocolError {
    /// Not the answer of a manager.
    #[error(
        "{manager} answered HTTP {status} with {answer}: is it a stayput manager, and not a newer \
         one than this client?"
    )]
    UnknownAnswer {
        /// The manager's address.
        manager: String,
        /// The HTTP status.
        status: u16,
        /// The answer, shortened.
        answer: String,
    },
    /// The manager answered at once, although nothing changed.
    #[error("the manager at {manager} answered a wait for a change with the unchanged status")]
    UnchangedStatus {
        /// The manager's address.
        manager: String,
    },
    /// The request cannot be serialized.
    #[error("the request cannot be written as JSON: {0}")]
    Body(#[source] serde_json::Error),
    /// The request is not valid HTTP.
    #[error("the request is not valid HTTP: {0}")]
    Request(#[source] hyper::http::Error),
}

impl ClientError {
    /// The error for a request that the manager at `target` did not answer.
    pub(super) fn of_exchange(error: ExchangeError, target: &Target) -> Self {
        let manager = target.to_string();
        match error {
            ExchangeError::Untrusted(source) => Untrusted { manager, source }.into(),
            ExchangeError::NotConnected(source) => NotReachable::new(target, source).into(),
            ExchangeError::Unanswered(source) => {
                Unanswered { manager: Some(manager), source }.into()
            }
        }
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
