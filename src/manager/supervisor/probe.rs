//! One call of the readiness probe: an HTTP(S) GET or a TCP connect, like the kubelet's probes.
//! 200–299 is ready. A redirect is not: whoever sends one is not the engine.

mod login;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST, LOCATION};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::errors::Errors;
use crate::worker::{NoThread, Worker};
use login::{Secrets, SecretsFiles};
use stayput_http::https::{FROM_1_2, Stream};
use stayput_http::terminal::plain;

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
            Some(files) => files.get().await?,
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
                let config = client_config(secrets.roots.clone(), !self.probe.is_loopback())
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

/// Longest part of an answer in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Reason why a call of the probe failed.
#[derive(Debug)]
enum Why {
    Connect(io::Error),
    InvalidName,
    TlsConfig(rustls::Error),
    Tls(io::Error),
    Request(hyper::http::Error),
    Http(hyper::Error),
    Answered { status: u16, location: Option<String> },
    Timeout,
}

impl Why {
    /// True if newer credentials or a newer CA may help.
    fn may_be_outdated_files(&self) -> bool {
        match self {
            Self::Tls(error) => matches!(rustls(error), Some(rustls::Error::InvalidCertificate(_))),
            Self::Answered { status, .. } => matches!(status, 401 | 403),
            _ => false,
        }
    }
}

/// One failed call of a probe.
#[derive(Debug)]
struct Refused<'a> {
    probe: &'a Probe,
    why: Why,
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the probe {} ", self.probe)?;
        match &self.why {
            Why::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                write!(out, "is refused: nothing listens there")
            }
            Why::Connect(error) => write!(out, "cannot connect: {error}"),
            Why::InvalidName => write!(out, "has a host that no certificate can be for"),
            Why::TlsConfig(error) => write!(out, "cannot set up TLS: {error}"),
            Why::Tls(error) => self.tls(error, out),
            Why::Request(error) => write!(out, "is no valid request: {error}"),
            Why::Http(error) if error.is_parse() || error.is_incomplete_message() => {
                let other = match self.probe {
                    Probe::Http { tls: false, .. } => "; does it expect https://?",
                    Probe::Http { .. } | Probe::Tcp { .. } => "",
                };
                write!(out, "got no HTTP answer: {error}{other}")
            }
            Why::Http(error) => write!(out, "got no HTTP answer: {error}"),
            Why::Answered { status, location } => self.answered(*status, location.as_deref(), out),
            Why::Timeout => {
                write!(out, "was not answered within {}s", PROBE_TIMEOUT.as_secs())
            }
        }
    }
}

impl Refused<'_> {
    fn answered(
        &self,
        status: u16,
        location: Option<&str>,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let auth = match self.probe {
            Probe::Http { auth, .. } => auth.as_deref().map(std::path::Path::display),
            Probe::Tcp { .. } => None,
        };
        match (status, location, auth) {
            (300..=399, Some(location), _) => {
                let location: String = plain(location).chars().take(MAX_SHOWN).collect();
                write!(out, "answered {status} to {location}: redirects are not followed")
            }
            (401, _, None) => {
                write!(out, "answered 401: the engine asks for a user: give one with --ready-auth")
            }
            (401, _, Some(auth)) => {
                write!(
                    out,
                    "answered 401: the engine does not accept what is in --ready-auth {auth}"
                )
            }
            (403, _, Some(auth)) => write!(
                out,
                "answered 403: the user in --ready-auth {auth} may not read this: it needs the \
                 cluster privilege `monitor`"
            ),
            (status, _, _) => write!(out, "answered {status}"),
        }
    }

    fn tls(&self, error: &io::Error, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ca = match self.probe {
            Probe::Http { ca: Some(ca), .. } => format!("--ready-ca {}", ca.display()),
            Probe::Http { ca: None, .. } | Probe::Tcp { .. } => "the CA".to_owned(),
        };
        match rustls(error) {
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => write!(out, "got a certificate that {ca} did not sign"),
            Some(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => write!(out, "got a certificate for another name than the host of the URL"),
            Some(rustls::Error::InvalidCertificate(reason)) => {
                write!(out, "got a certificate that cannot be trusted: {reason}")
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                write!(out, "got no TLS answer; does it expect http://?")
            }
            Some(error) => write!(out, "failed in the TLS handshake: {error}"),
            None => write!(out, "failed in the TLS handshake: {error}"),
        }
    }
}

fn rustls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Trusts certificates that `roots` signed; without roots, any certificate.
fn client_config(
    roots: Option<Arc<RootCertStore>>,
    check_name: bool,
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        // Named one by one: the default of rustls depends on which other crates are in the build.
        .with_protocol_versions(FROM_1_2)?;
    let verifier = Arc::new(Verifier { roots, check_name, algorithms });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Verifies who signed the certificate, if a CA is given. On loopback the name is not compared:
/// certificates of engines are seldom for 127.0.0.1.
#[derive(Debug)]
struct Verifier {
    roots: Option<Arc<RootCertStore>>,
    check_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
            if self.check_name {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.roots.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.roots.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
