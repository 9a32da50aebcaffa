//! Facts about the certificates of one cluster.

use std::fmt;

use stayput_http::validity::Validity;

use crate::names::SecretNames;

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 32]);

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(formatter, "Id({first:02x}{second:02x}…)")
    }
}

/// A CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// Digest of the CA's certificate.
    pub id: Id,
    /// Validity of the CA.
    pub validity: Validity,
}

/// The certificate of the managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serving {
    /// Validity of the certificate.
    pub validity: Validity,
    /// The CA that signed the certificate, if it is a known one.
    pub signed_by: Option<Id>,
    /// True if the certificate is for the name that managers are called by.
    pub is_named: bool,
}

/// An object that exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Existing<T> {
    /// True if stayput made the object, and may change it.
    pub is_ours: bool,
    /// Content of the object, or the reason why it cannot be used.
    pub content: Result<T, String>,
}

/// Known objects of one cluster, and time; `None` for an object that is absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateFacts {
    /// Names of the objects.
    pub names: SecretNames,
    /// Present time in seconds since the epoch.
    pub now: u64,
    /// Seconds by which the apiserver's clock differs from `now`, if that is known.
    pub clock_differs: Option<u64>,
    /// True if absent objects may be made.
    pub may_create: bool,
    /// The CA whose key is kept.
    pub authority: Option<Existing<Authority>>,
    /// The CAs that managers are checked with.
    pub trusted: Option<Existing<Vec<Authority>>>,
    /// Time since when these CAs are trusted, in seconds since the epoch; 0 if that is not known.
    pub trusted_since: u64,
    /// The certificate that managers serve.
    pub serving: Option<Existing<Serving>>,
}
