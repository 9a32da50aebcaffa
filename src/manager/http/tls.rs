//! TLS of the listener, built from PEM. It uses ring, never the default provider of the process.

use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

use stayput_net::pem::{self, PemError};

/// Why the documents give no TLS configuration. The messages do not contain the files' names.
#[derive(Debug, Error)]
pub(super) enum TlsConfigError {
    #[error(transparent)]
    Pem(#[from] PemError),
    #[error("TLS cannot be set up: {0}")]
    Versions(#[source] rustls::Error),
    #[error("the client CA file holds a certificate that cannot be used: {0}")]
    ClientCaCertificate(#[source] rustls::Error),
    #[error("the client CA file cannot be used: {0}")]
    ClientCa(#[source] VerifierBuilderError),
    #[error("the key is not the certificate's: give the pair that was issued together")]
    Mismatch(#[source] rustls::Error),
    #[error("certificate and key cannot be used: {0}")]
    Pair(#[source] rustls::Error),
}

/// Builds the configuration. With `client_ca`, clients are asked for a certificate, but may connect
/// without one (the kubelet's probes have none): access is decided per route.
///
/// # Errors
/// [`TlsConfigError`] says which document is wrong and what to do.
pub(super) fn server_config(
    certificate: &[u8],
    key: &[u8],
    client_ca: Option<&[u8]>,
) -> Result<ServerConfig, TlsConfigError> {
    let chain = pem::certificates("the certificate file", certificate)?;
    let key = pem::private_key("the key file", key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        // The default of rustls depends on which other crates are in the build.
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(TlsConfigError::Versions)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for root in pem::certificates("the client CA file", ca)? {
                roots.add(root).map_err(TlsConfigError::ClientCaCertificate)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(TlsConfigError::ClientCa)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        error @ rustls::Error::InconsistentKeys(_) => TlsConfigError::Mismatch(error),
        error => TlsConfigError::Pair(error),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Clients are few and keep their connections. Stored sessions would only cost memory, and a
    // resumed one would skip the check of the client's certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    #[test]
    fn a_pair_that_belongs_together_is_taken_and_every_other_named() {
        let one = generate_simple_self_signed(["a".to_owned()]).unwrap();
        let other = generate_simple_self_signed(["b".to_owned()]).unwrap();
        let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let (cert, key) = (cert.as_bytes(), key.as_bytes());
        assert!(server_config(cert, key, None).is_ok());
        assert!(server_config(cert, key, Some(other.cert.pem().as_bytes())).is_ok());

        let refusal = |cert, key, ca| server_config(cert, key, ca).unwrap_err().to_string();
        let wrong_key = other.signing_key.serialize_pem();
        assert!(refusal(cert, wrong_key.as_bytes(), None).contains("not the certificate's"));
        assert!(refusal(b"", key, None).contains("holds no CERTIFICATE"));
        assert!(refusal(key, cert, None).contains("holds no CERTIFICATE"));
        assert!(refusal(cert, b"", None).contains("no private key"));
        assert!(refusal(cert, key, Some(b"")).contains("client CA file holds no CERTIFICATE"));
        let torn = &cert[..cert.len() - 40];
        assert!(refusal(torn, key, None).contains("certificate file"));
    }

    /// The tests build rustls with TLS 1.2, so that this test can fail.
    #[test]
    fn tls_1_2_is_not_spoken_whatever_else_is_in_the_build() {
        use rustls::pki_types::ServerName;
        use rustls::{ClientConfig, ClientConnection, ServerConnection};

        let pair = generate_simple_self_signed(["a".to_owned()]).unwrap();
        let key = pair.signing_key.serialize_pem();
        let greeted = |version| {
            let mut roots = RootCertStore::empty();
            roots.add(pair.cert.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let client = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let name = ServerName::try_from("a").unwrap();
            let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let config = server_config(pair.cert.pem().as_bytes(), key.as_bytes(), None).unwrap();
            let mut server = ServerConnection::new(Arc::new(config)).unwrap();
            server.read_tls(&mut hello.as_slice()).unwrap();
            server.process_new_packets()
        };
        assert!(greeted(&rustls::version::TLS13).is_ok());
        assert!(matches!(
            greeted(&rustls::version::TLS12),
            Err(rustls::Error::PeerIncompatible(_))
        ));
    }
}
