//! Until when the served certificate is valid, and when to say that it ends soon.

use std::time::{Duration, UNIX_EPOCH};

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// In seconds. A certificate that is valid for long is reported this long before its end.
const LONGEST_NOTICE: u64 = 14 * 24 * 3600;
/// The notice is this part of the time that a certificate is valid for. Whoever renews certificates
/// by itself does so much earlier.
const NOTICE_PART: u64 = 10;

/// When a certificate chain is valid, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    not_before: u64,
    pub(super) not_after: u64,
}

impl Validity {
    /// When all certificates of the chain are valid; none if that cannot be read.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let mut whole = Self { not_before: 0, not_after: u64::MAX };
        for certificate in chain {
            // The dates are in the library's errors only. They are checked before everything else.
            let certificate = EndEntityCert::try_from(certificate).ok()?;
            let check = |at: u64| {
                let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
                let usage = KeyUsage::server_auth();
                certificate.verify_for_usage(&[], &[], &[], at, usage, None, None).err()
            };
            if let Some(Error::CertNotValidYet { not_before, .. }) = check(0) {
                whole.not_before = whole.not_before.max(not_before.as_secs());
            }
            match check(u64::MAX) {
                Some(Error::CertExpired { not_after, .. }) => {
                    whole.not_after = whole.not_after.min(not_after.as_secs());
                }
                _ => return None,
            }
        }
        (whole.not_after < u64::MAX).then_some(whole)
    }

    /// When to begin to say that it ends soon.
    fn notice(&self) -> u64 {
        let part = self.not_after.saturating_sub(self.not_before) / NOTICE_PART;
        self.not_after.saturating_sub(part.min(LONGEST_NOTICE))
    }

    /// What to say at `now`, and what to do.
    pub(super) fn problem(&self, now: u64) -> Option<String> {
        let date =
            || humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.not_after));
        if now > self.not_after {
            return Some(format!(
                "the API's certificate has expired at {}: renew --tls-cert",
                date()
            ));
        }
        (now >= self.notice())
            .then(|| format!("the API's certificate expires at {}: renew --tls-cert", date()))
    }

    /// From `now` until [`Self::problem`] says something else.
    pub(super) fn until_change(&self, now: u64) -> Option<Duration> {
        let next =
            [self.notice(), self.not_after.saturating_add(1)].into_iter().find(|at| *at > now);
        next.map(|at| Duration::from_secs(at - now))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    const DAY: u64 = 24 * 3600;

    #[test]
    fn the_end_is_read_and_said_in_time() {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 11);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let validity = Validity::of(&[certificate.der().clone()]).unwrap();
        // `date -d 2026-01-01T00:00:00Z +%s`, and 100 days later.
        let end = 1_767_225_600 + 100 * DAY;
        assert_eq!(validity, Validity { not_before: 1_767_225_600, not_after: end });
        assert_eq!(validity.problem(end - 10 * DAY - 1), None);
        assert_eq!(validity.until_change(end - 11 * DAY), Some(Duration::from_secs(DAY)));
        let soon = validity.problem(end - 10 * DAY).unwrap();
        assert!(soon.contains("expires at 2026-04-11T00:00:00Z"), "{soon}");
        assert_eq!(validity.until_change(end), Some(Duration::from_secs(1)));
        assert!(validity.problem(end + 1).unwrap().contains("has expired"));
        assert_eq!(validity.until_change(end + 1), None);
        assert_eq!(Validity::of(&[CertificateDer::from(vec![1, 2])]), None);
    }

    #[test]
    fn long_certificates_are_not_reported_for_a_year() {
        let validity = Validity { not_before: 0, not_after: 3_650 * DAY };
        assert_eq!(validity.problem(3_650 * DAY - LONGEST_NOTICE - 1), None);
        assert!(validity.problem(3_650 * DAY - LONGEST_NOTICE).is_some());
    }
}
