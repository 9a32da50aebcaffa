//! Certificates and keys as PEM, for both ends of TLS.

use rustls_pki_types::pem::{Error, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a PEM document cannot be used. Each message begins with the document's name.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// Not PEM at all, or cut off.
    #[error("{name} is not PEM: {source}")]
    Syntax {
        /// The document.
        name: String,
        /// Error of the parser.
        source: Error,
    },
    /// PEM without a `CERTIFICATE` section.
    #[error("{name} holds no CERTIFICATE in PEM: give the file the issuer made")]
    NoCertificate {
        /// The document.
        name: String,
    },
    /// PEM without a private key.
    #[error("{name} holds no private key in PEM ({source}): give the certificate's key")]
    NoPrivateKey {
        /// The document.
        name: String,
        /// Error of the parser.
        source: Error,
    },
}

/// The certificates of a document, in their order; at least one. `name` is the document's, for
/// messages.
///
/// # Errors
/// [`PemError::Syntax`] or [`PemError::NoCertificate`].
pub fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Err(source) => Err(PemError::Syntax { name: name.to_owned(), source }),
        Ok(chain) if chain.is_empty() => Err(PemError::NoCertificate { name: name.to_owned() }),
        Ok(chain) => Ok(chain),
    }
}

/// The private key of a document. `name` is the document's, for messages.
///
/// # Errors
/// [`PemError::NoPrivateKey`].
pub fn private_key(name: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|source| PemError::NoPrivateKey { name: name.to_owned(), source })
}
