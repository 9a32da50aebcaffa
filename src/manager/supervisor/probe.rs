//! One call of the readiness probe: an HTTP(S) GET or a TCP connect, like the kubelet's probes.
//! 200–399 is ready; the certificate is not verified, because a probe on loopback needs no name.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::worker::Worker;

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
    /// GET answers with 200–399.
    Http {
        /// `host:port`.
        address: String,
        /// Path and query.
        path: String,
        /// Over TLS.
        tls: bool,
    },
}

impl Probe {
    /// Whether the engine's address is a name, which is looked up for each probe.
    pub fn has_name(&self) -> bool {
        self.address().parse::<SocketAddr>().is_err()
    }

    /// Probes once. Every failure means not ready. `lookup`: the thread for names.
    pub(super) async fn check(&self, lookup: Option<&Worker>) -> bool {
        timeout(PROBE_TIMEOUT, self.ask(lookup)).await.unwrap_or(false)
    }

    fn address(&self) -> &str {
        match self {
            Self::Tcp { address } | Self::Http { address, .. } => address,
        }
    }

    async fn ask(&self, lookup: Option<&Worker>) -> bool {
        let address = self.address();
        let Ok(stream) = connect(address, lookup).await else { return false };
        match self {
            Self::Tcp { .. } => true,
            Self::Http { path, tls: false, .. } => get(stream, address, path).await,
            Self::Http { path, tls: true, .. } => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let (Ok(name), Some(config)) = (ServerName::try_from(host), client_config()) else {
                    return false;
                };
                match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
                    Ok(stream) => get(stream, address, path).await,
                    Err(_) => false,
                }
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

async fn get(stream: impl AsyncRead + AsyncWrite + Unpin, address: &str, path: &str) -> bool {
    let Ok((mut sender, connection)) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await
    else {
        return false;
    };
    let request = Request::get(path).header(HOST, address).body(Empty::<Bytes>::new());
    let Ok(request) = request else { return false };
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        answer = &mut answer => answer,
        // If the server closes the connection after its answer, the answer is passed on before
        // this.
        _ = connection => answer.await,
    };
    answer.is_ok_and(|answer| (200..400).contains(&answer.status().as_u16()))
}

fn client_config() -> Option<ClientConfig> {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        // Set explicitly: with kube in the same build, the default of rustls has more algorithms.
        .with_protocol_versions(&[&rustls::version::TLS13])
        .ok()?;
    let verifier = Arc::new(AnyCertificate {
        schemes: provider.signature_verification_algorithms.supported_schemes(),
    });
    Some(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts any certificate: the probe connects to its own engine and sends no secret.
#[derive(Debug)]
struct AnyCertificate {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
