//! A CA and the managers' certificate, which is for the name `stayput`.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// The key that managers and reconciler share.
pub(super) const KEY: &str = "a shared key of thirty-two bytes, or more";

/// Writes `tls.crt`, `tls.key` and `jwt.key`; the PEM of the CA.
pub(super) fn write(directory: &Path) -> Result<String, String> {
    let made = || {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(["stayput".to_owned()])?.signed_by(&key, &ca)?;
        Ok::<_, rcgen::Error>((ca.pem(), certificate.pem(), key.serialize_pem()))
    };
    let (ca, certificate, key) = made().map_err(|error| format!("no certificate: {error}"))?;
    for (name, content) in
        [("tls.crt", certificate.as_str()), ("tls.key", key.as_str()), ("jwt.key", KEY)]
    {
        fs::write(directory.join(name), content).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(ca)
}
