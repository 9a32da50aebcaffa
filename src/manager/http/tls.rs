//! TLS of the listener, built from PEM. It uses ring, never the default provider of the process.

use std::str::FromStr;
use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use thiserror::Error;

use stayput_http::pem::{self, PemError};

type Versions = &'static [&'static SupportedProtocolVersion];
/// The TLS versions, named one by one: the default of rustls depends on which other crates are in the build.
const ONLY_1_3: Versions = &[&TLS13];
/// TLS 1.3 and 1.2. The cipher suites that ring has for 1.2 are those with ECDHE and AEAD, no others.
const FROM_1_2: Versions = &[&TLS13, &TLS12];

/// The oldest TLS version that the listener accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsMin {
    V1_2,
    #[default]
    V1_3,
}

impl TlsMin {
    fn versions(self) -> Versions {
        match self {
            Self::V1_2 => FROM_1_2,
            Self::V1_3 => ONLY_1_3,
        }
    }
}

/// A text that is no TLS version of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the versions are 1.3 and 1.2; older ones are not safe")]
pub struct UnknownTlsVersion;

impl FromStr for TlsMin {
    type Err = UnknownTlsVersion;

    fn from_str(text: &str) -> Result<Self, UnknownTlsVersion> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err(UnknownTlsVersion),
        }
    }
}

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
    min: TlsMin,
) -> Result<ServerConfig, TlsConfigError> {
    let chain = pem::certificates("the certificate file", certificate)?;
    let key = pem::private_key("the key file", key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(min.versions())
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
mod tests;
