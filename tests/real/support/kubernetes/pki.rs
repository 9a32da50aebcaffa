//! The certificates of one cluster: one CA that signs those of servers and clients.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, DnValue, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The CA, and the files that it has written.
#[derive(Debug)]
pub(crate) struct Pki {
    directory: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    pub(crate) fn new(directory: PathBuf) -> Self {
        fs::create_dir(&directory).expect("a directory");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "stayput-test-ca");
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let pki = Self { directory, issuer };
        fs::write(pki.authority(), pki.issuer.pem()).expect("a certificate");
        pki
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// A certificate for a server at these addresses.
    pub(crate) fn server(&self, name: &str, addresses: &[IpAddr]) -> Identity {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned)).expect("names");
        let addresses = addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name.push(DnType::CommonName, name);
        self.sign(name, params)
    }

    /// A certificate for a client: Kubernetes reads the common name as user, the organization as
    /// group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, DnValue::Utf8String(group.to_owned()));
        self.sign(&user.replace(':', "-"), params)
    }

    fn sign(&self, name: &str, mut params: CertificateParams) -> Identity {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let at = |suffix: &str| self.directory.join(format!("{name}.{suffix}"));
        let identity = Identity { certificate: at("crt"), key: at("key") };
        fs::write(&identity.certificate, certificate.pem()).expect("a certificate");
        fs::write(&identity.key, key.serialize_pem()).expect("a key");
        identity
    }

    /// The key that signs service account tokens.
    pub(crate) fn token_key(&self) -> PathBuf {
        self.directory.join("sa.key")
    }

    /// Creates it: RSA, as usual.
    pub(crate) fn make_token_key(&self) -> PathBuf {
        Self::rsa(self.token_key())
    }

    /// Creates the one that follows it.
    pub(crate) fn make_next_token_key(&self) -> PathBuf {
        Self::rsa(self.directory.join("sa-next.key"))
    }

    fn rsa(key: PathBuf) -> PathBuf {
        openssl(&["genrsa", "-out", text(&key), "2048"]);
        key
    }
}

/// For what rcgen cannot do.
fn openssl(args: &[&str]) {
    let output = Command::new("openssl").args(args).output().expect("openssl can be executed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {args:?}: {errors}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
