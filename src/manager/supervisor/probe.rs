//! One call of the readiness probe: an HTTP(S) GET or a TCP connect, like the kubelet's probes.
//! 200–299 is ready. A redirect is not: whoever sends one is not the engine.

mod error;
mod login;
mod secrets;
#[cfg(test)]
mod tests;
mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
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
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::errors::Errors;
use crate::worker::{NoThread, Worker};
use error::{Refused, Why};
use secrets::{Secrets, SecretsFiles};
use stayput_http::https::Stream;

/// How long an answer may take, as with the kubelet's own probes. Shorter than the time the API
/// waits for it, so that an engine that hangs is reported as not ready, and not with its last good
/// answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// A readiness probe.
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
        /// True for a call over TLS.
        tls: bool,
        /// The CA that the engine's certificate must be signed by. Without one, any certificate is
        /// accepted.
        ca: Option<PathBuf>,
        /// Credentials: a file, or the directory of a mounted Secret.
        auth: Option<PathBuf>,
    },
}

impl Probe {
    fn address(&self) -> &str {
        match self {
            Self::Tcp { address } | Self::Http { address, .. } => address,
        }
    }

    /// True if the engine's address is a name, which is looked up for each call.
    fn has_name(&self) -> bool {
        self.address().parse::<SocketAddr>().is_err()
    }

    /// True if the probe stays on this machine: in a pod, among its own containers.
    pub fn is_loopback(&self) -> bool {
        let host = host(self.address());
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// The probe as written in the option.
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

/// A probe, its threads, and the values read from its files.
#[derive(Debug)]
pub struct Prober {
    probe: Probe,
    /// The thread that looks up the engine's name, if it has one.
    lookup: Option<Worker>,
    files: Option<SecretsFiles>,
}

impl Prober {
    /// Makes the threads that the probe needs.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn start(probe: Probe, errors: &Errors) -> Result<Self, NoThread> {
        let lookup = probe.has_name().then(|| Worker::start("lookup", errors)).transpose()?;
        let files = match &probe {
            Probe::Tcp { .. } | Probe::Http { ca: None, auth: None, .. } => None,
            Probe::Http { ca, auth, .. } => {
                let worker = Worker::start("probe files", errors)?;
                Some(SecretsFiles::new(ca.clone(), auth.clone(), worker))
            }
        };
        Ok(Self { probe, lookup, files })
    }

    /// Probes once.
    ///
    /// # Errors
    /// Why the engine is not ready, for people. The same cause has the same text.
    pub(super) async fn check(&self) -> Result<(), String> {
        let secrets = match &self.files {
            Some(files) => files.get().await.map_err(|error| error.to_string())?,
            None => Arc::default(),
        };
        let outcome = match timeout(PROBE_TIMEOUT, self.ask(&secrets)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Why::Timeout),
        };
        outcome.map_err(|why| {
            if let Some(files) = &self.files
                && why.may_be_outdated_files()
            {
                files.read_again();
            }
            Refused { probe: &self.probe, why }.to_string()
        })
    }

    async fn ask(&self, secrets: &Secrets) -> Result<(), Why> {
        let address = self.probe.address();
        let stream = connect(address, self.lookup.as_ref()).await.map_err(Why::Connect)?;
        match &self.probe {
            Probe::Tcp { .. } => Ok(()),
            Probe::Http { path, tls: false, .. } => {
                get(Box::new(stream), address, path, secrets).await
            }
            Probe::Http { path, tls: true, .. } => {
                let name =
                    ServerName::try_from(host(address).to_owned()).map_err(|_| Why::InvalidName)?;
                let config = tls::client_config(secrets.roots.clone(), !self.probe.is_loopback())
                    .map_err(Why::TlsConfig)?;
                let connector = TlsConnector::from(Arc::new(config));
                let stream = connector.connect(name, stream).await.map_err(Why::Tls)?;
                get(Box::new(stream), address, path, secrets).await
            }
        }
    }
}

/// Connects. A name is not looked up by tokio, which would make a thread for it.
async fn connect(address: &str, lookup: Option<&Worker>) -> io::Result<TcpStream> {
    let Some(lookup) = lookup else {
        return TcpStream::connect(address.parse::<SocketAddr>().map_err(io::Error::other)?).await;
    };
    let name = address.to_owned();
    let found = lookup.run(move || name.to_socket_addrs().map(Vec::from_iter)).await;
    TcpStream::connect(found.map_err(io::Error::other)??.as_slice()).await
}

/// The host of `host:port`, without brackets.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn get(
    stream: Box<dyn Stream>,
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
