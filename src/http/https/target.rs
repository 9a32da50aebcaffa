//! The address of a server, and one connection to it.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, io};

use hyper::header::HeaderValue;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::Tls;

/// A connection of any kind: boxed, so that the code that uses it is compiled once.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A server, and how to connect to it.
#[derive(Debug, Clone)]
pub struct Target {
    transport: Transport,
    authority: HeaderValue,
}

#[derive(Debug, Clone)]
enum Transport {
    Socket(PathBuf),
    Tcp { host: String, port: u16, tls: Option<(Tls, ServerName<'static>)> },
}

impl Target {
    /// A server behind a unix socket.
    pub fn socket(path: impl Into<PathBuf>) -> Self {
        Self {
            transport: Transport::Socket(path.into()),
            authority: HeaderValue::from_static("localhost"),
        }
    }

    /// A server with plain HTTP; `host` is a name or an IP address, without brackets.
    ///
    /// # Errors
    /// The host has characters that no host has.
    pub fn http(host: &str, port: u16) -> Result<Self, String> {
        Self::tcp(host, port, None)
    }

    /// A server with HTTP over TLS. The certificate must be for `name`, or without one for `host`:
    /// pods are reached by IP addresses, which no certificate can contain in advance.
    ///
    /// # Errors
    /// The name is none that a certificate can be for, or the host is none.
    pub fn https(host: &str, port: u16, tls: &Tls, name: Option<&str>) -> Result<Self, String> {
        let name = name.unwrap_or(host);
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("{name:?} is neither a DNS name nor an IP address"))?;
        Self::tcp(host, port, Some((tls.clone(), server)))
    }

    fn tcp(host: &str, port: u16, tls: Option<(Tls, ServerName<'static>)>) -> Result<Self, String> {
        let authority =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let authority = HeaderValue::from_str(&authority)
            .map_err(|_| format!("{host:?} has characters that no host has"))?;
        Ok(Self { transport: Transport::Tcp { host: host.to_owned(), port, tls }, authority })
    }

    /// Path of the unix socket, if the server has one.
    pub fn socket_path(&self) -> Option<&Path> {
        match &self.transport {
            Transport::Socket(path) => Some(path),
            Transport::Tcp { .. } => None,
        }
    }

    /// The value of the `Host` header.
    pub(super) fn authority(&self) -> HeaderValue {
        self.authority.clone()
    }

    /// Connects. Has no timeout: the caller must set one.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, ExchangeError> {
        let (host, port, tls) = match &self.transport {
            Transport::Socket(path) => {
                return match UnixStream::connect(path).await {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(error) => Err(error.into()),
                };
            }
            Transport::Tcp { host, port, tls } => (host.as_str(), *port, tls),
        };
        let tcp = TcpStream::connect((host, port)).await?;
        // A manager does not answer the end of the TLS handshake: with Nagle's algorithm the request
        // would wait for its delayed acknowledgement (measured: 44 ms an exchange, 2 ms without).
        tcp.set_nodelay(true)?;
        let Some((tls, name)) = tls else { return Ok(Box::new(tcp)) };
        match TlsConnector::from(tls.config()).connect(name.clone(), tcp).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(tls.handshake_error(error, name)),
        }
    }
}

/// Shows a path, or a URL without a path.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transport {
            Transport::Socket(path) => path.display().fmt(formatter),
            Transport::Tcp { host, port, tls } => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                if host.contains(':') {
                    write!(formatter, "{scheme}://[{host}]:{port}")
                } else {
                    write!(formatter, "{scheme}://{host}:{port}")
                }
            }
        }
    }
}

/// Why there is no answer. Each variant says whether the request can have had an effect.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The server's certificate is not accepted: its fault, and what to do. Nothing was sent.
    #[error("{0}")]
    Untrusted(String),
    /// No connection, no TLS session, or not in time. Nothing was sent.
    #[error(transparent)]
    NotConnected(#[from] io::Error),
    /// The request was sent, at least in part, and no whole answer came: it may have had its effect.
    #[error(transparent)]
    Unanswered(#[from] NoAnswer),
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
