//! Tests of the decisions, and of certificates that are really made.

mod decide;
mod issue;
mod key_set;
mod years;

use stayput_http::pem::Validity;

use crate::names::SecretNames;
use crate::{Authority, CertificateFacts, Existing, Id, Serving};

pub(crate) const HOUR: u64 = 3600;
pub(crate) const DAY: u64 = 24 * HOUR;
pub(crate) const YEAR: u64 = 365 * DAY;
/// When the first certificates were made.
pub(crate) const START: u64 = 1_767_225_600;

pub(crate) fn authority(id: u8, made: u64) -> Authority {
    let validity = Validity { not_before: made - HOUR, not_after: made + 10 * YEAR };
    Authority { id: Id([id; 32]), validity }
}

pub(crate) fn serving(signed_by: u8, made: u64) -> Serving {
    let validity = Validity { not_before: made - HOUR, not_after: made + YEAR };
    Serving { validity, signed_by: Some(Id([signed_by; 32])), is_named: true }
}

pub(crate) fn existing<T>(content: T) -> Option<Existing<T>> {
    Some(Existing { is_ours: true, content: Ok(content) })
}

/// All is there, made at [`START`], and it is a day later.
pub(crate) fn good() -> CertificateFacts {
    CertificateFacts {
        names: SecretNames::of("search", "logs"),
        now: START + DAY,
        clock_differs: Some(1),
        may_create: false,
        authority: existing(authority(1, START)),
        trusted: existing(vec![authority(1, START)]),
        trusted_since: START,
        serving: existing(serving(1, START)),
    }
}
