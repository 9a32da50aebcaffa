//! A CA, and a certificate that it signed.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, Error, IsCa, KeyPair,
};

/// A CA, and one certificate with its key.
#[derive(Debug)]
pub struct Issued {
    pub ca: CertifiedIssuer<'static, KeyPair>,
    pub certificate: Certificate,
    pub key: KeyPair,
}

impl Issued {
    /// CA, certificate and key in PEM.
    pub fn pem(&self) -> (String, String, String) {
        (self.ca.pem(), self.certificate.pem(), self.key.serialize_pem())
    }
}

/// A new CA, and a certificate for these names.
pub fn issue(names: &[&str]) -> Result<Issued, Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // With the name of its own certificate, OpenSSL takes each for one that signed itself.
    params.distinguished_name.push(DnType::CommonName, "test CA");
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)?.signed_by(&key, &ca)?;
    Ok(Issued { ca, certificate, key })
}
