//! TLS of the client: whom to trust, what certificate to show.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;

use super::address::Credentials;
use crate::pem;

/// Builds the TLS settings. The system's own roots are never used: a manager's certificate comes
/// from the cluster's CA, and the image may have no roots at all.
pub(super) fn config(credentials: &Credentials) -> Result<Arc<ClientConfig>, String> {
    let Some(ca) = &credentials.ca else {
        return Err("an https URL needs the CA that signed the manager's certificate: \
                    give --ca FILE (STAYPUT_CA)"
            .into());
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("CA", ca)? {
        roots
            .add(certificate)
            .map_err(|error| format!("the CA {} cannot be used: {error}", ca.display()))?;
    }
    // The provider is named, never the process's default: two of them in one build would panic.
    let builder =
        ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .with_root_certificates(roots);
    let config = match (&credentials.certificate, &credentials.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = certificates("client certificate", certificate)?;
            let what = format!("the key {}", key.display());
            let secret = pem::private_key(&what, &read("key", key)?)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                format!(
                    "the client certificate {} and the key {} cannot be used together: {error}",
                    certificate.display(),
                    key.display()
                )
            })?
        }
        (Some(_), None) => {
            return Err("a client certificate needs its key: give --key FILE as well".into());
        }
        (None, Some(_)) => {
            return Err("a key needs its client certificate: give --cert FILE as well".into());
        }
    };
    Ok(Arc::new(config))
}

/// What to do about a certificate that was not accepted; `None` where rustls' own words will do.
pub(super) fn explain(error: &io::Error) -> Option<&'static str> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(reason) = error else { return None };
    match reason {
        // The second is a CA of the same name with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Some("it was not signed by the CA of --ca (STAYPUT_CA): give the CA that issued it")
        }
        // The only word rustls has for it is the verifier's own, inside an opaque error.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(
                "it is a CA's own (basicConstraints CA:TRUE), as self-signed ones often are: \
                 give the manager one with CA:FALSE, and --ca what signed it",
            )
        }
        _ => None,
    }
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    pem::certificates(&format!("the {what} {}", path.display()), &read(what, path)?)
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("the {what} {} cannot be read: {error}", path.display()))
}
