//! Why a probe found the engine not ready, and the sentence for people.

use std::fmt;
use std::io;

use rustls::CertificateError;
use stayput_http::terminal::plain;

use super::Probe;

/// Longest part of an answer in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Reason why a call of the probe failed.
#[derive(Debug)]
pub(super) enum Why {
    Connect(io::Error),
    InvalidName,
    TlsConfig(rustls::Error),
    Tls(io::Error),
    Request(hyper::http::Error),
    Http(hyper::Error),
    Answered { status: u16, location: Option<String> },
    Timeout,
}

impl Why {
    /// True if newer credentials or a newer CA may help.
    pub(super) fn may_be_outdated_files(&self) -> bool {
        match self {
            Self::Tls(error) => matches!(rustls(error), Some(rustls::Error::InvalidCertificate(_))),
            Self::Answered { status, .. } => matches!(status, 401 | 403),
            _ => false,
        }
    }
}

/// One failed call of a probe.
#[derive(Debug)]
pub(super) struct Refused<'a> {
    pub(super) probe: &'a Probe,
    pub(super) why: Why,
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the probe {} ", self.probe)?;
        match &self.why {
            Why::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                write!(out, "is refused: nothing listens there")
            }
            Why::Connect(error) => write!(out, "cannot connect: {error}"),
            Why::InvalidName => write!(out, "has a host that no certificate can be for"),
            Why::TlsConfig(error) => write!(out, "cannot set up TLS: {error}"),
            Why::Tls(error) => self.tls(error, out),
            Why::Request(error) => write!(out, "is no valid request: {error}"),
            Why::Http(error) if error.is_parse() || error.is_incomplete_message() => {
                let other = match self.probe {
                    Probe::Http { tls: false, .. } => "; does it expect https://?",
                    Probe::Http { .. } | Probe::Tcp { .. } => "",
                };
                write!(out, "got no HTTP answer: {error}{other}")
            }
            Why::Http(error) => write!(out, "got no HTTP answer: {error}"),
            Why::Answered { status, location } => self.answered(*status, location.as_deref(), out),
            Why::Timeout => {
                write!(out, "was not answered within {}s", super::PROBE_TIMEOUT.as_secs())
            }
        }
    }
}

impl Refused<'_> {
    fn answered(
        &self,
        status: u16,
        location: Option<&str>,
        out: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let auth = match self.probe {
            Probe::Http { auth, .. } => auth.as_deref().map(std::path::Path::display),
            Probe::Tcp { .. } => None,
        };
        match (status, location, auth) {
            (300..=399, Some(location), _) => {
                let location: String = plain(location).chars().take(MAX_SHOWN).collect();
                write!(out, "answered {status} to {location}: redirects are not followed")
            }
            (401, _, None) => {
                write!(out, "answered 401: the engine asks for a user: give one with --ready-auth")
            }
            (401, _, Some(auth)) => {
                write!(
                    out,
                    "answered 401: the engine does not accept what is in --ready-auth {auth}"
                )
            }
            (403, _, Some(auth)) => write!(
                out,
                "answered 403: the user in --ready-auth {auth} may not read this: it needs the \
                 cluster privilege `monitor`"
            ),
            (status, _, _) => write!(out, "answered {status}"),
        }
    }

    fn tls(&self, error: &io::Error, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ca = match self.probe {
            Probe::Http { ca: Some(ca), .. } => format!("--ready-ca {}", ca.display()),
            Probe::Http { ca: None, .. } | Probe::Tcp { .. } => "the CA".to_owned(),
        };
        match rustls(error) {
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => write!(out, "got a certificate that {ca} did not sign"),
            Some(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => write!(out, "got a certificate for another name than the host of the URL"),
            Some(rustls::Error::InvalidCertificate(reason)) => {
                write!(out, "got a certificate that cannot be trusted: {reason}")
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                write!(out, "got no TLS answer; does it expect http://?")
            }
            Some(error) => write!(out, "failed in the TLS handshake: {error}"),
            None => write!(out, "failed in the TLS handshake: {error}"),
        }
    }
}

fn rustls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}
