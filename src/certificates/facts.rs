//! What is known of the certificates of one cluster.

use std::fmt;

use stayput_net::validity::Validity;

use crate::names::Names;

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
    /// Which one it is.
    pub id: Id,
    /// Until when it is valid.
    pub validity: Validity,
}

/// The certificate of the managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serving {
    /// Until when it is valid.
    pub validity: Validity,
    /// The CA that signed it, if it is one of those that are known.
    pub signed_by: Option<Id>,
    /// Whether it is for the name that managers are called by.
    pub is_named: bool,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Found<T> {
    /// Whether we made it, and may change it.
    pub is_ours: bool,
    /// What is in it, or why that cannot be used.
    pub content: Result<T, String>,
}

/// What is known; none of an object that is absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts {
    /// What the objects are called.
    pub names: Names,
    /// In seconds since the epoch.
    pub now: u64,
    /// By how many seconds the apiserver's clock differs from `now`, if that is known.
    pub clock_differs: Option<u64>,
    /// Whether absent objects may be made.
    pub may_create: bool,
    /// The CA whose key is kept.
    pub authority: Option<Found<Authority>>,
    /// The CAs that managers are checked with.
    pub trusted: Option<Found<Vec<Authority>>>,
    /// Since when these are, in seconds since the epoch; 0 if that is not known.
    pub trusted_since: u64,
    /// What managers serve.
    pub serving: Option<Found<Serving>>,
}
