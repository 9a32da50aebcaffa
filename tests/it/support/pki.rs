//! A CA and one certificate it signed, for fake servers and their clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, iter};

use rcgen::KeyPair;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use stayput_http::https::{Identity, ONLY_1_3, Pem, Tls};
use stayput_standin::harness::pki::{Issued, issue};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// A CA and one certificate; both PEM documents and the key are files as well.
pub(crate) struct Pki {
    dir: TempDir,
    ca: CertificateDer<'static>,
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Pki {
    /// The certificate is for 127.0.0.1.
    pub(crate) fn new() -> Self {
        Self::named(&["127.0.0.1"])
    }

    /// The certificate is for these names.
    pub(crate) fn named(names: &[&str]) -> Self {
        let Issued { ca, certificate, key } = issue(names).expect("a certificate");
        let dir = TempDir::new().expect("a directory");
        for (name, text) in
            [("ca", ca.pem()), ("cert", certificate.pem()), ("key", key.serialize_pem())]
        {
            fs::write(dir.path().join(name), text).expect("a file");
        }
        Self { dir, ca: ca.der().clone(), certificate: certificate.der().clone(), key }
    }

    /// `ca`, `cert` or `key`, or another file beside them.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `ca`, `cert` or `key`, named "the … of the test".
    pub(crate) fn pem(&self, name: &str) -> Pem {
        Pem::new(format!("the {name} of the test"), fs::read(self.file(name)).expect("a file"))
    }

    /// A client that trusts the CA and shows the certificate.
    pub(crate) fn identified(&self) -> Tls {
        let identity = Identity { certificate: self.pem("cert"), key: self.pem("key") };
        Tls::new(&self.pem("ca"), Some(&identity), ONLY_1_3).expect("TLS")
    }

    /// A client that trusts the CA.
    pub(crate) fn tls(&self) -> Tls {
        Tls::new(&self.pem("ca"), None, ONLY_1_3).expect("TLS")
    }

    /// A server with the certificate that takes clients with and without one.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.server(rustls::DEFAULT_VERSIONS, false)
    }

    /// A server with the certificate.
    pub(crate) fn server(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        needs_client: bool,
    ) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(iter::once(self.ca.clone()));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        let verifier = if needs_client { verifier } else { verifier.allow_unauthenticated() };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions")
            .with_client_cert_verifier(verifier.build().expect("a verifier"))
            .with_single_cert(
                vec![self.certificate.clone()],
                PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key"),
            )
            .expect("a pair");
        // As a manager does.
        config.send_tls13_tickets = 0;
        Arc::new(config).into()
    }
}
