//! Certificates and keys as PEM, for both ends of the API.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The certificates of a document, in their order; at least one.
///
/// # Errors
/// A sentence that begins with `what` and says what to do.
pub fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Err(error) => Err(format!("{what} is not PEM: {error}")),
        Ok(chain) if chain.is_empty() => {
            Err(format!("{what} holds no CERTIFICATE in PEM: give the file the issuer made"))
        }
        Ok(chain) => Ok(chain),
    }
}

/// The private key of a document.
///
/// # Errors
/// A sentence that begins with `what` and says what to do.
pub fn private_key(what: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        format!("{what} holds no private key in PEM ({error}): give the certificate's key")
    })
}
