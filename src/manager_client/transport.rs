//! Opens one connection to the manager.

use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time;
use tokio_rustls::TlsConnector;

use super::address::{self, Address, Authority};
use super::{ClientError, tls};

/// How long connecting may take, with name resolution and TLS handshake.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection of any kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A checked address, with what is needed to connect to it.
pub(super) enum Transport {
    Socket(PathBuf),
    Url { url: String, authority: Authority, tls: Option<Tls>, token: Option<PathBuf> },
}

/// What a TLS connection needs.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Transport {
    pub(super) fn new(address: &Address) -> Result<Self, ClientError> {
        match address {
            Address::Socket(path) => Ok(Self::Socket(path.clone())),
            Address::Url { url, credentials } => {
                let authority = address::parse(url).map_err(ClientError::Credentials)?;
                let tls = if authority.tls {
                    let config = tls::config(credentials).map_err(ClientError::Credentials)?;
                    let name = ServerName::try_from(authority.host.clone()).map_err(|_| {
                        ClientError::Credentials(format!("{url:?} has no usable host name"))
                    })?;
                    Some(Tls { connector: TlsConnector::from(config), name })
                } else {
                    None
                };
                let token = credentials.token.clone();
                Ok(Self::Url { url: url.clone(), authority, tls, token })
            }
        }
    }

    /// What to put into `Host`.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Socket(_) => "localhost".into(),
            Self::Url { authority: Authority { host, port, .. }, .. } if host.contains(':') => {
                format!("[{host}]:{port}")
            }
            Self::Url { authority: Authority { host, port, .. }, .. } => format!("{host}:{port}"),
        }
    }

    /// Where the token is, if one is to be shown.
    pub(super) fn token(&self) -> Option<&Path> {
        match self {
            Self::Socket(_) => None,
            Self::Url { token, .. } => token.as_deref(),
        }
    }

    /// Connects, within a bounded time.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, ClientError> {
        let sentence = match time::timeout(CONNECT, self.open()).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => self.explain(&error),
            Err(_) => format!(
                "cannot reach the manager at {self}: no connection within {} s",
                CONNECT.as_secs()
            ),
        };
        Err(ClientError::NotReachable(sentence))
    }

    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Socket(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Self::Url { authority, tls, .. } => {
                let tcp = TcpStream::connect((authority.host.as_str(), authority.port)).await?;
                match tls {
                    None => Ok(Box::new(tcp)),
                    Some(Tls { connector, name }) => {
                        Ok(Box::new(connector.connect(name.clone(), tcp).await?))
                    }
                }
            }
        }
    }

    fn explain(&self, error: &io::Error) -> String {
        if let Some(sentence) = tls::explain(error) {
            return format!("cannot trust the certificate of the manager at {self}: {sentence}");
        }
        let hint = match (self, error.kind()) {
            (Self::Socket(path), io::ErrorKind::ConnectionRefused) if !is_socket(path) => {
                "; this is no socket: give the path that the manager has as --socket"
            }
            (Self::Socket(_), io::ErrorKind::NotFound) => {
                "; does a manager run here with --socket, and is this its path \
                 (--socket, STAYPUT_SOCKET)?"
            }
            (Self::Socket(_), io::ErrorKind::ConnectionRefused) => {
                "; the manager that made this socket is gone"
            }
            (Self::Socket(_), io::ErrorKind::PermissionDenied) => "; be root or the manager's user",
            (Self::Url { .. }, io::ErrorKind::ConnectionRefused) => {
                "; does a manager run there with --listen, and is this its port?"
            }
            // rustls reports what it does not accept as invalid data, in words that need no more.
            (Self::Socket(_) | Self::Url { .. }, _) => "",
        };
        format!("cannot reach the manager at {self}: {error}{hint}")
    }
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(formatter),
            Self::Url { url, .. } => url.fmt(formatter),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Transport({self})")
    }
}
