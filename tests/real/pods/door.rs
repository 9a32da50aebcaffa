//! How a client reaches the engines behind a Service: plain, or with TLS and a password.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;

use crate::support::http::{Answer, exchange, exchange_as};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A Service, and what its engines ask of a client.
pub(super) struct Door {
    pub(super) service: &'static str,
    secured: Option<Secured>,
}

struct Secured {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    authorization: String,
}

impl Door {
    /// Engines behind the Service `logs` that everybody may ask.
    pub(super) const fn plain() -> Self {
        Self { service: "logs", secured: None }
    }

    /// Engines whose certificate is for the Service and signed by `authority`; as the user `elastic`.
    pub(super) fn secured(service: &'static str, authority: &str, password: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(certificate.expect("a certificate")).expect("a CA");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("they are there")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let user = base64::engine::general_purpose::STANDARD.encode(format!("elastic:{password}"));
        Self {
            service,
            secured: Some(Secured {
                config: Arc::new(config),
                name: ServerName::try_from(service).expect("a name"),
                authorization: format!("Basic {user}"),
            }),
        }
    }

    /// The answer of the engine at this address, if there is one, on a connection of its own.
    pub(super) fn ask(
        &self,
        address: &str,
        request: (&str, &str),
        body: Option<&Value>,
    ) -> Option<Answer> {
        let address: SocketAddr = format!("{address}:9200").parse().expect("an address");
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
        let Some(secured) = &self.secured else {
            return exchange(stream, request, body).ok();
        };
        let (config, name) = (Arc::clone(&secured.config), secured.name.clone());
        let connection = ClientConnection::new(config, name).expect("a connection");
        let stream = StreamOwned::new(connection, stream);
        exchange_as(stream, &secured.authorization, request, body).ok()
    }
}
