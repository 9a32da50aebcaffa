//! What can go wrong between asking and having an answer.

use hyper::body::Bytes;
use thiserror::Error;

use crate::api::Problem;

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
    /// The request was sent and no whole answer came: it may have had its effect. Asking again
    /// with the same sequence is safe.
    #[error("{0}")]
    Unanswered(String),
    /// The manager refused, or what was asked for failed.
    #[error("{0}")]
    Refused(Refused),
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
