//! TLS of the client: whom to trust, what certificate to show.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::address::Credentials;

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
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                format!("the key {} cannot be read as a PEM key: {error}", key.display())
            })?;
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

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| {
        format!("the {what} {} cannot be read as PEM certificates: {error}", path.display())
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if found.is_empty() {
        return Err(format!("the {what} {} holds no PEM certificate", path.display()));
    }
    Ok(found)
}
