//! TLS of a client: which CA to trust, which certificate to present, which versions to use.

use std::sync::Arc;
use std::{fmt, io};

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, SupportedProtocolVersion};

use super::ExchangeError;
use crate::pem;

/// Our own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain, with our certificate first.
    pub certificate: Pem,
    /// Private key of the certificate.
    pub key: Pem,
}

/// The TLS versions to use, named one by one: the default of rustls depends on which other crates
/// are in the build.
pub type Versions = &'static [&'static SupportedProtocolVersion];

/// TLS 1.3 alone, which every manager supports.
pub const ONLY_1_3: Versions = &[&TLS13];

/// TLS 1.3 and 1.2. The cipher suites that ring has for 1.2 are those with ECDHE and AEAD, no others.
pub const FROM_1_2: Versions = &[&TLS13, &TLS12];

/// The TLS configuration of all connections to one cluster. Clones share it.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    ca: Arc<str>,
}

impl Tls {
    /// Trusts certificates that `ca` signed and presents `identity`, if there is one. The system's own roots
    /// are never used: the certificates come from the cluster's CA, and the image may have no roots.
    ///
    /// # Errors
    /// The document that cannot be used, and what to do.
    pub fn new(ca: &Pem, identity: Option<&Identity>, versions: Versions) -> Result<Self, String> {
        let roots = pem::roots(ca.name(), ca.bytes())?;
        // The provider is set explicitly: with two of them in one build, the default would panic.
        let builder =
            ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
                .with_protocol_versions(versions)
                .map_err(|error| format!("TLS cannot be set up: {error}"))?
                .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let chain = pem::certificates(certificate.name(), certificate.bytes())?;
                let secret = pem::private_key(key.name(), key.bytes())?;
                builder.with_client_auth_cert(chain, secret).map_err(|error| {
                    let (certificate, key) = (certificate.name(), key.name());
                    format!("{certificate} and {key} cannot be used together: {error}")
                })?
            }
        };
        Ok(Self { config: Arc::new(config), ca: ca.name().into() })
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// The error of a failed handshake. A certificate problem with known advice becomes
    /// [`ExchangeError::Untrusted`].
    pub(super) fn handshake_error(
        &self,
        source: io::Error,
        name: &ServerName<'_>,
    ) -> ExchangeError {
        let ca = &self.ca;
        let tls = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let Some(rustls::Error::InvalidCertificate(reason)) = tls else { return source.into() };
        ExchangeError::Untrusted(match reason {
            // The second error means a CA of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "it was not signed by {ca}: give the CA that issued it, or check which server \
                 listens there"
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "it is not for the name {:?}: issue one with that subjectAltName, or configure \
                     the name it has",
                    name.to_str()
                )
            }
            // rustls has no variant for it, only an opaque one with the verifier's error inside.
            CertificateError::Other(other)
                if format!("{other:?}").contains("CaUsedAsEndEntity") =>
            {
                format!(
                    "it is a CA's own (basicConstraints CA:TRUE), as self-signed ones often are: \
                     serve one with CA:FALSE, and give its issuer in place of {ca}"
                )
            }
            _ => return source.into(),
        })
    }
}

/// Shows only the CA: the key is a secret.
impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tls({})", self.ca)
    }
}

/// A PEM document, from a file or a Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    name: String,
    bytes: Vec<u8>,
}

impl Pem {
    /// A document with this content. `name` is used in messages: `the CA /etc/ca.pem`, `the key
    /// tls.key of Secret logs/tls`.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Shows only the name: the document may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pem({})", self.name)
    }
}
