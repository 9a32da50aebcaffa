//! TLS of a client: whom to trust, what certificate to show, which versions to speak.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::Pem;
use crate::pem;

/// Our own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain, ours first.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
}

/// The TLS versions to speak, named one by one: rustls' own choice depends on which other crates are
/// in the build.
pub type Versions = &'static [&'static SupportedProtocolVersion];

/// 1.3 alone, which every manager speaks.
pub const ONLY_1_3: Versions = &[&TLS13];

/// What every TLS connection to one cluster has in common. Clones share it.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    ca: Arc<str>,
}

impl Tls {
    /// Trusts what `ca` signed and shows `identity`, if there is one. The system's own roots are
    /// never used: the certificates come from the cluster's CA, and the image may have no roots.
    ///
    /// # Errors
    /// A sentence that names the document that cannot be used and says what to do.
    pub fn new(ca: &Pem, identity: Option<&Identity>, versions: Versions) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in pem::certificates(ca.name(), ca.bytes())? {
            roots
                .add(certificate)
                .map_err(|error| format!("{} cannot be used: {error}", ca.name()))?;
        }
        // The provider is named, never the process's default: two of them in one build would panic.
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
                    format!(
                        "{} and {} cannot be used together: {error}",
                        certificate.name(),
                        key.name()
                    )
                })?
            }
        };
        Ok(Self { config: Arc::new(config), ca: ca.name().into() })
    }

    pub(super) fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// What to do about a certificate that was not accepted; `None` where the error is about
    /// something else, or rustls' own words will do.
    pub(super) fn explain(&self, error: &io::Error, name: &ServerName<'_>) -> Option<String> {
        let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        let rustls::Error::InvalidCertificate(reason) = error else { return None };
        match reason {
            // The second is a CA of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(format!(
                "it was not signed by {}: give the CA that issued it, or look who listens there",
                self.ca
            )),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(format!(
                    "it is not for the name {:?}: issue one with that subjectAltName, or say which \
                     name it has",
                    name.to_str()
                ))
            }
            // The only word rustls has for it is the verifier's own, inside an opaque error.
            CertificateError::Other(other)
                if format!("{other:?}").contains("CaUsedAsEndEntity") =>
            {
                Some(format!(
                    "it is a CA's own (basicConstraints CA:TRUE), as self-signed ones often are: \
                     serve one with CA:FALSE, and give what signed it in place of {}",
                    self.ca
                ))
            }
            _ => None,
        }
    }
}

/// Whom it trusts: nothing else of it is of interest, and the key is a secret.
impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tls({})", self.ca)
    }
}
