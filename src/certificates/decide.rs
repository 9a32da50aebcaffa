//! The next step for the certificates of one cluster.
//!
//! A CA is changed in three steps, each decided from the present objects, wherever the last process
//! ended: a new CA; the CA is trusted beside the old one; the managers get a certificate that the
//! new CA signed. The old CA is trusted until every manager has that certificate.

use std::fmt;

use stayput_http::pem::{Expiry, Validity, date};

use crate::names::SecretNames;

/// Seconds by which a certificate begins to be valid before it is made: clocks differ.
pub(crate) const BACKDATED: u64 = 3600;
/// Seconds by which our clock and the apiserver's may differ. If they differ by more, nothing is made.
const CLOCKS_DIFFER: u64 = BACKDATED / 2;
/// Seconds that a new CA is trusted before managers show certificates that it signed: whoever
/// checks them has read it by then.
const READ_BY_THEN: u64 = 3600;
/// Seconds that the last CA is trusted after managers were given a certificate of the next one.
const MOUNTED_BY_THEN: u64 = 24 * 3600;

/// Next object to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A new CA, with a new key.
    MakeAuthority,
    /// These CAs, and no others, as those that managers are checked with.
    Trust(Vec<Id>),
    /// A new certificate for the managers, with a new key.
    Issue,
}

/// Result of [`decide`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Object to write next. After that, decide again.
    pub step: Option<Step>,
    /// Problems, the worst first.
    pub problems: Vec<Problem>,
}

/// Decides on the next step for the certificates.
pub fn decide(facts: &CertificateFacts) -> Decision {
    let mut decision = Decision { step: None, problems: ends(facts) };
    let parts = [
        (facts.names.authority.clone(), owner(facts.authority.as_ref())),
        (facts.names.trusted.clone(), owner(facts.trusted.as_ref())),
        (facts.names.serving.clone(), owner(facts.serving.as_ref())),
    ];
    let has_ours = parts.iter().any(|(_, is_ours)| *is_ours == Some(true));
    let has_gap = parts.iter().any(|(_, is_ours)| is_ours.is_none());
    if !(has_ours || has_gap && facts.may_create) {
        return decision;
    }
    let foreign = parts.into_iter().find(|(_, is_ours)| *is_ours == Some(false));
    let step = match (foreign, facts.clock_differs) {
        (Some((object, _)), _) => {
            let (namespace, cluster) = facts.names.owner();
            Err(Problem::Mixed { object, namespace, cluster })
        }
        (None, Some(seconds)) if seconds > CLOCKS_DIFFER => Err(Problem::Clocks { seconds }),
        (None, _) => step(facts),
    };
    match step {
        Ok(step) => decision.step = step,
        Err(problem) => decision.problems.insert(0, problem),
    }
    decision
}

fn owner<T>(found: Option<&Existing<T>>) -> Option<bool> {
    found.map(|found| found.is_ours)
}

fn step(facts: &CertificateFacts) -> Result<Option<Step>, Problem> {
    let absent = |object: String, step: Step| {
        if facts.may_create {
            Ok(Some(step))
        } else {
            let (namespace, cluster) = facts.names.owner();
            Err(Problem::Absent { object, namespace, cluster })
        }
    };
    let Some(authority) = &facts.authority else {
        return absent(facts.names.authority.clone(), Step::MakeAuthority);
    };
    // Its key may be the only one that can still sign, so it is not replaced without being asked.
    let authority = authority.content.as_ref().map_err(|problem| Problem::Unusable {
        object: facts.names.authority.clone(),
        problem: problem.clone(),
        namespace: facts.names.namespace.clone(),
        cluster: facts.names.cluster.clone(),
    })?;
    if facts.now >= due(authority.validity) {
        return Ok(Some(Step::MakeAuthority));
    }

    let Some(trusted) = &facts.trusted else {
        return absent(facts.names.trusted.clone(), Step::Trust(vec![authority.id]));
    };
    let none = Vec::new();
    let trusted = trusted.content.as_ref().unwrap_or(&none);
    if !contains(trusted, authority.id) {
        let others = trusted.iter().filter(|other| other.validity.not_after > facts.now);
        let others = others.map(|other| other.id);
        return Ok(Some(Step::Trust([authority.id].into_iter().chain(others).collect())));
    }

    let Some(serving) = &facts.serving else {
        return absent(facts.names.serving.clone(), Step::Issue);
    };
    let Ok(serving) = &serving.content else { return Ok(Some(Step::Issue)) };
    if is_useless(serving, trusted, facts.now) {
        return Ok(Some(Step::Issue));
    }
    let is_by_it = serving.signed_by == Some(authority.id);
    let is_known = facts.now >= facts.trusted_since.saturating_add(READ_BY_THEN);
    if (facts.now >= due(serving.validity) || !is_by_it) && is_known {
        return Ok(Some(Step::Issue));
    }
    let is_mounted = facts.now >= made(serving.validity).saturating_add(MOUNTED_BY_THEN);
    let is_over = trusted.len() > 1 && is_by_it && is_mounted;
    Ok(is_over.then(|| Step::Trust(vec![authority.id])))
}

/// Time when two thirds of a certificate's life are over.
fn due(validity: Validity) -> u64 {
    validity.not_before.saturating_add(validity.life() / 3 * 2)
}

fn made(validity: Validity) -> u64 {
    validity.not_before.saturating_add(BACKDATED)
}

fn contains(authorities: &[Authority], id: Id) -> bool {
    authorities.iter().any(|authority| authority.id == id)
}

/// True if managers cannot be called with this certificate.
fn is_useless(serving: &Serving, trusted: &[Authority], now: u64) -> bool {
    let is_trusted = serving.signed_by.is_some_and(|id| contains(trusted, id));
    let Validity { not_before, not_after } = serving.validity;
    !is_trusted || !serving.is_named || now < not_before || now > not_after
}

/// Certificates that have ended, or end soon.
fn ends(facts: &CertificateFacts) -> Vec<Problem> {
    let all = [
        (facts.names.serving.clone(), facts.serving_validity()),
        (facts.names.trusted.clone(), facts.trusted_validity()),
    ];
    let mut problems: Vec<Problem> = Vec::new();
    for (object, validity) in all {
        let Some(validity) = validity else { continue };
        let at = validity.not_after;
        match validity.expiry(facts.now) {
            Expiry::Over => problems.insert(0, Problem::Expired { object, at }),
            Expiry::Soon => problems.push(Problem::ExpiresSoon { object, at }),
            Expiry::Later => {}
        }
    }
    problems
}

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

impl CertificateFacts {
    /// Validity of the certificate that managers serve, if it can be read.
    pub fn serving_validity(&self) -> Option<Validity> {
        Some(self.serving.as_ref()?.content.as_ref().ok()?.validity)
    }

    /// Validity of the trusted CA that ends last, if it can be read: those beside it may be left from earlier.
    pub fn trusted_validity(&self) -> Option<Validity> {
        let trusted = self.trusted.as_ref()?.content.as_ref().ok()?;
        trusted.iter().map(|one| one.validity).max_by_key(|validity| validity.not_after)
    }
}

/// A fault, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Problem {
    /// Renewals would be made with a wrong date.
    #[error(
        "the clocks here and at the apiserver differ by {seconds} s: correct them; no certificate is \
         renewed before that"
    )]
    Clocks {
        /// Difference of the clocks in seconds.
        seconds: u64,
    },
    /// An object that is needed to renew is absent.
    #[error(
        "Secret {object} is absent: `kubectl stayput -n {namespace} init {cluster}` makes it again"
    )]
    Absent {
        /// Name of the Secret.
        object: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// Some of the Secrets were made by somebody else.
    #[error(
        "Secret {object} was not made by stayput for this SearchCluster, so none of the managers' \
         certificates is renewed: name another one in spec.manager.caSecret, or delete it, and run \
         `kubectl stayput -n {namespace} init {cluster}`"
    )]
    Mixed {
        /// Name of the Secret.
        object: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// The content of a Secret cannot be used.
    #[error(
        "Secret {object} cannot be used ({problem}): delete it, and run `kubectl stayput -n {namespace} init {cluster}`"
    )]
    Unusable {
        /// Name of the Secret.
        object: String,
        /// Reason why the content cannot be used.
        problem: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// A certificate ends soon, and is not renewed.
    #[error("the certificate in Secret {object} expires at {}: renew it", date(*.at))]
    ExpiresSoon {
        /// Name of the Secret.
        object: String,
        /// Time of the end, in seconds since the epoch.
        at: u64,
    },
    /// A certificate has ended.
    #[error("the certificate in Secret {object} has expired at {}: renew it", date(*.at))]
    Expired {
        /// Name of the Secret.
        object: String,
        /// Time of the end, in seconds since the epoch.
        at: u64,
    },
    /// The apiserver's keys are not known.
    #[error("the apiserver's public keys are not known: {why}")]
    KeysUnknown {
        /// Reason why they are not known.
        why: String,
    },
    /// Somebody else's copy of the apiserver's keys is old.
    #[error(
        "ConfigMap {object} lacks keys that the apiserver signs tokens with, and stayput did not make \
         it: managers will refuse the reconciler. Delete it, and run `kubectl stayput -n {namespace} init {cluster}`"
    )]
    KeysOld {
        /// Name of the ConfigMap.
        object: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
}

impl Problem {
    /// Time when a certificate ends, in seconds since the epoch; `None` for other problems.
    pub const fn ends_at(&self) -> Option<u64> {
        match self {
            Self::ExpiresSoon { at, .. } | Self::Expired { at, .. } => Some(*at),
            Self::Clocks { .. }
            | Self::Absent { .. }
            | Self::Mixed { .. }
            | Self::Unusable { .. }
            | Self::KeysUnknown { .. }
            | Self::KeysOld { .. } => None,
        }
    }

    /// The reason of a condition, for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Clocks { .. } => "ClocksDiffer",
            Self::Absent { .. } => "SecretAbsent",
            Self::Mixed { .. } => "NotKept",
            Self::Unusable { .. } => "SecretUnusable",
            Self::ExpiresSoon { .. } => "ExpiresSoon",
            Self::Expired { .. } => "Expired",
            Self::KeysUnknown { .. } => "KeysUnknown",
            Self::KeysOld { .. } => "KeysOld",
        }
    }
}
