//! Why there is no answer, no TLS, or no server to ask.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::pem::PemError;

/// Why there is no answer. Each variant says whether the request can have had an effect.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The server's certificate is not accepted. Nothing was sent.
    #[error(transparent)]
    Untrusted(#[from] UntrustedCertificate),
    /// No connection, no TLS session, or not in time. Nothing was sent.
    #[error(transparent)]
    NotConnected(#[from] io::Error),
    /// The request was sent, at least in part, and no whole answer came: it may have had its effect.
    #[error(transparent)]
    Unanswered(#[from] NoAnswer),
}

/// A fault of the server's certificate, and what to do. The source is the error of rustls.
#[derive(Debug, Error)]
pub enum UntrustedCertificate {
    /// Signed by another CA, or by a CA of the same name with another key.
    #[error(
        "it was not signed by {ca}: give the CA that issued it, or check which server listens there"
    )]
    UnknownIssuer {
        /// Name of the CA document.
        ca: String,
        /// Error of the handshake.
        source: io::Error,
    },
    /// For another name than the one that was asked for.
    #[error(
        "it is not for the name {name:?}: issue one with that subjectAltName, or configure the \
         name it has"
    )]
    WrongName {
        /// The name that was asked for.
        name: String,
        /// Error of the handshake.
        source: io::Error,
    },
    /// The certificate of a CA, which rustls does not accept as a server's.
    #[error(
        "it is a CA's own (basicConstraints CA:TRUE), as self-signed ones often are: serve one \
         with CA:FALSE, and give its issuer in place of {ca}"
    )]
    CaCertificate {
        /// Name of the CA document.
        ca: String,
        /// Error of the handshake.
        source: io::Error,
    },
}

/// Why the answer did not arrive.
#[derive(Debug, Error)]
pub enum NoAnswer {
    /// No answer came within this time.
    #[error("no answer within {}", humantime::format_duration(*.0))]
    Timeout(Duration),
    /// The answer is larger than this many bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The connection ended, or the answer was not HTTP.
    #[error("no whole answer: {}", with_sources(&**.0))]
    Interrupted(#[source] Box<dyn StdError + Send + Sync>),
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A document that is not PEM of the right kind.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A CA certificate that cannot be used.
    #[error("{ca} cannot be used: {source}")]
    Ca {
        /// Name of the document.
        ca: String,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// Our certificate and key do not belong together.
    #[error("{certificate} and {key} cannot be used together: {source}")]
    Identity {
        /// Name of the certificate's document.
        certificate: String,
        /// Name of the key's document.
        key: String,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// The TLS versions cannot be used with this build.
    #[error("TLS cannot be set up: {0}")]
    Versions(#[source] rustls::Error),
}

/// A host or server name that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidTarget {
    /// Not a name that a certificate can be for.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    ServerName(String),
    /// Not a host that can be put into a header.
    #[error("{0:?} has characters that no host has")]
    Host(String),
}

/// The error and its sources: hyper reports "connection error", and the reason is in a source.
fn with_sources(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let reason = source.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        next = source.source();
    }
    text
}
