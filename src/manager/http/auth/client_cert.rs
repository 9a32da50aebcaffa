//! Names in a client's certificate.

use std::sync::Arc;

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::Caller;
use stayput_http::jwt::Scopes;

/// The caller with this verified client certificate: the first allowed name that is exactly one of
/// its DNS or URI names. The common name is ignored: it can be of any kind.
pub(crate) fn caller(
    certificate: &CertificateDer<'_>,
    allowed: &[(String, Scopes)],
) -> Option<Caller> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let presents = |name: &str| {
        certificate.valid_dns_names().any(|own| own == name)
            || certificate.valid_uri_names().any(|own| own == name)
    };
    let (name, scopes) = allowed.iter().find(|(name, _)| presents(name))?;
    Some(Caller { subject: Arc::from(format!("client:{name}")), scopes: *scopes })
}
