//! One call of the readiness probe: an HTTP(S) GET or a TCP connect, like the kubelet's probes.
//! 200–299 is ready. A redirect is not: whoever sends one is not the engine.

mod error;
mod secrets;
#[cfg(test)]
mod tests;
mod tls;

use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST, LOCATION};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use error::{Refused, Why};
use secrets::{Secrets, SecretsFiles};

/// How long an answer may take, as with the kubelet's own probes. Shorter than the time the API
/// waits for it, so that an engine that hangs is reported as not ready, and not with its last good
/// answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// The port accepts connections.
    Tcp {
        /// `host:port`.
        address: String,
    },
    /// GET answers with 200–299.
    Http {
        /// `host:port`.
        address: String,
        /// Path and query.
        path: String,
        /// Over TLS.
        tls: bool,
        /// The CA that the engine's certificate must be signed by. Without one, any certificate is
        /// accepted.
        ca: Option<PathBuf>,
        /// What to log in with.
        auth: Option<PathBuf>,
    },
}

impl Probe {
    /// Whether the probe stays on this machine: in a pod, among its own containers.
    pub fn is_loopback(&self) -> bool {
        let host = host(match self {
            Self::Tcp { address } | Self::Http { address, .. } => address,
        });
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// As in the option.
impl std::fmt::Display for Probe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { address } => write!(formatter, "tcp://{address}"),
            Self::Http { address, path, tls, .. } => {
                let scheme = if *tls { "https" } else { "http" };
                write!(formatter, "{scheme}://{address}{path}")
            }
        }
    }
}

/// A probe, and what was read from its files.
#[derive(Debug)]
pub(super) struct Prober {
    probe: Probe,
    files: SecretsFiles,
}

impl Prober {
    pub(super) fn new(probe: Probe) -> Self {
        let (ca, auth) = match &probe {
            Probe::Tcp { .. } => (None, None),
            Probe::Http { ca, auth, .. } => (ca.clone(), auth.clone()),
        };
        Self { probe, files: SecretsFiles::new(ca, auth) }
    }

    /// Probes once.
    ///
    /// # Errors
    /// Why the engine is not ready, for people. The same cause has the same text.
    pub(super) async fn check(&self) -> Result<(), String> {
        let secrets = self.files.get().await.map_err(|error| error.to_string())?;
        let outcome = match timeout(PROBE_TIMEOUT, self.ask(&secrets)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Why::Timeout),
        };
        outcome.map_err(|why| {
            if why.may_be_outdated_files() {
                self.files.read_again();
            }
            Refused { probe: &self.probe, why }.to_string()
        })
    }

    async fn ask(&self, secrets: &Secrets) -> Result<(), Why> {
        let address = match &self.probe {
            Probe::Tcp { address } | Probe::Http { address, .. } => address,
        };
        let stream = TcpStream::connect(address).await.map_err(Why::Connect)?;
        match &self.probe {
            Probe::Tcp { .. } => Ok(()),
            Probe::Http { path, tls: false, .. } => get(stream, address, path, secrets).await,
            Probe::Http { path, tls: true, .. } => {
                let name =
                    ServerName::try_from(host(address).to_owned()).map_err(|_| Why::InvalidName)?;
                let config = tls::client_config(secrets.roots.clone(), !self.probe.is_loopback())
                    .map_err(Why::TlsConfig)?;
                let connector = TlsConnector::from(Arc::new(config));
                let stream = connector.connect(name, stream).await.map_err(Why::Tls)?;
                get(stream, address, path, secrets).await
            }
        }
    }
}

/// The host of `host:port`, without brackets.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    address: &str,
    path: &str,
    secrets: &Secrets,
) -> Result<(), Why> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(Why::Http)?;
    let mut request = Request::get(path).header(HOST, address);
    if let Some(authorization) = &secrets.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(Why::Request)?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // If the server closes the connection after its answer, the answer is passed on before
        // this.
        _ = connection => answer.await,
    };
    let answer = answer.map_err(Why::Http)?;
    if answer.status().is_success() {
        return Ok(());
    }
    let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    Err(Why::Answered { status: answer.status().as_u16(), location: location.map(str::to_owned) })
}
