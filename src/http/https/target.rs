//! The address of a server, and one connection to it.

use std::fmt;
use std::path::{Path, PathBuf};

use hyper::header::HeaderValue;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::{ExchangeError, InvalidTarget, Tls};

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
    /// [`InvalidTarget::Host`].
    pub fn http(host: &str, port: u16) -> Result<Self, InvalidTarget> {
        Self::tcp(host, port, None)
    }

    /// A server with HTTP over TLS. The certificate must be for `name`, or without one for `host`:
    /// pods are reached by IP addresses, which no certificate can contain in advance.
    ///
    /// # Errors
    /// [`InvalidTarget`].
    pub fn https(
        host: &str,
        port: u16,
        tls: &Tls,
        name: Option<&str>,
    ) -> Result<Self, InvalidTarget> {
        let name = name.unwrap_or(host);
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| InvalidTarget::ServerName(name.to_owned()))?;
        Self::tcp(host, port, Some((tls.clone(), server)))
    }

    fn tcp(
        host: &str,
        port: u16,
        tls: Option<(Tls, ServerName<'static>)>,
    ) -> Result<Self, InvalidTarget> {
        let authority =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let authority =
            HeaderValue::from_str(&authority).map_err(|_| InvalidTarget::Host(host.to_owned()))?;
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
