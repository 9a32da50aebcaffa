//! Certificates and keys as PEM, for both ends of TLS, and when certificates are valid.

use std::time::{Duration, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

/// The certificates of a document, in their order; at least one. `name` is the document's, for
/// messages.
///
/// # Errors
/// The document is not PEM, is cut off, or holds no certificate.
pub fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Err(error) => Err(format!("{name} is not PEM: {error}")),
        Ok(chain) if chain.is_empty() => {
            Err(format!("{name} holds no CERTIFICATE in PEM: give the file the issuer made"))
        }
        Ok(chain) => Ok(chain),
    }
}

/// The CAs of a document, to check certificates with. `name` is the document's, for messages.
///
/// # Errors
/// The errors of [`certificates`], or a certificate that cannot be used.
pub fn roots(name: &str, pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(name, pem)? {
        roots
            .add(certificate)
            .map_err(|error| format!("{name} holds a certificate that cannot be used: {error}"))?;
    }
    Ok(roots)
}

/// The private key of a document. `name` is the document's, for messages.
///
/// # Errors
/// The document holds no private key.
pub fn private_key(name: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        format!("{name} holds no private key in PEM ({error}): give the certificate's key")
    })
}

/// Longest notice in seconds: the end of a certificate that is valid for long is reported this long before.
const LONGEST_NOTICE: u64 = 14 * 24 * 3600;
/// Divisor of the time that a certificate is valid for: the quotient is the notice. Whoever renews
/// certificates by itself does so much earlier.
const NOTICE_PART: u64 = 10;

/// When certificates are valid, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Validity {
    /// The first second.
    pub not_before: u64,
    /// The last second.
    pub not_after: u64,
}

impl Validity {
    /// Time during which all certificates of the chain are valid, if that can be read.
    pub fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let mut whole = Self { not_before: 0, not_after: u64::MAX };
        for certificate in chain {
            // The dates are in the library's errors only. They are checked before everything else.
            let certificate = EndEntityCert::try_from(certificate).ok()?;
            let check = |at: u64| {
                let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
                let usage = KeyUsage::server_auth();
                certificate.verify_for_usage(&[], &[], &[], at, usage, None, None).err()
            };
            if let Some(webpki::Error::CertNotValidYet { not_before, .. }) = check(0) {
                whole.not_before = whole.not_before.max(not_before.as_secs());
            }
            match check(u64::MAX) {
                Some(webpki::Error::CertExpired { not_after, .. }) => {
                    whole.not_after = whole.not_after.min(not_after.as_secs());
                }
                _ => return None,
            }
        }
        (whole.not_after < u64::MAX).then_some(whole)
    }

    /// Validity of the CA that ends last: of several in a document, one that is valid is enough.
    pub fn of_last(authorities: &[CertificateDer<'_>]) -> Option<Self> {
        let each = authorities.iter().map(std::slice::from_ref).filter_map(Self::of);
        each.max_by_key(|one| one.not_after)
    }

    /// The time until the validity ends, seen from `now`, as far as it has to be reported.
    pub fn expiry(&self, now: u64) -> Expiry {
        if now > self.not_after {
            Expiry::Over
        } else if now >= self.notice() {
            Expiry::Soon
        } else {
            Expiry::Later
        }
    }

    /// Time from `now` until [`Self::expiry`] changes, if it changes.
    pub fn until_change(&self, now: u64) -> Option<Duration> {
        let next = [self.notice(), self.not_after.saturating_add(1)].into_iter();
        next.filter(|at| *at > now).min().map(|at| Duration::from_secs(at - now))
    }

    /// Length of the validity in seconds.
    pub fn life(&self) -> u64 {
        self.not_after.saturating_sub(self.not_before)
    }

    /// Time from which on to report that the validity ends soon, in seconds since the epoch.
    pub fn notice(&self) -> u64 {
        self.not_after.saturating_sub((self.life() / NOTICE_PART).min(LONGEST_NOTICE))
    }
}

/// When a certificate expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// So late that it need not be reported.
    Later,
    /// Soon: it has to be renewed.
    Soon,
    /// The certificate has expired.
    Over,
}

/// A time in seconds since the epoch as people read it: `2027-01-01T00:00:00Z`. A certificate cannot name a
/// time after the year 9999.
pub fn date(seconds: u64) -> humantime::Rfc3339Timestamp {
    let seconds = seconds.min(253_402_300_799);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    const DAY: u64 = 24 * 3600;

    #[test]
    fn it_is_read_from_the_certificate() {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 11);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let validity = Validity::of(&[certificate.der().clone()]).unwrap();
        // `date -d 2026-01-01T00:00:00Z +%s`, and 100 days later.
        let end = 1_767_225_600 + 100 * DAY;
        assert_eq!(validity, Validity { not_before: 1_767_225_600, not_after: end });
        assert_eq!(Validity::of(&[CertificateDer::from(vec![1, 2])]), None);
    }

    #[test]
    fn the_end_of_a_long_one_is_not_said_for_a_year() {
        let days = |days: u64| Validity { not_before: 0, not_after: days * DAY };
        assert_eq!(days(100).notice(), 90 * DAY);
        assert_eq!(days(3_650).notice(), 3_636 * DAY);
    }
}
