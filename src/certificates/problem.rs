//! What a person should know about the certificates and keys of a cluster.

use std::time::{Duration, UNIX_EPOCH};

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Problem {
    /// Renewals would be made with a wrong date.
    #[error(
        "the clocks here and at the apiserver differ by {seconds} s: correct them; no certificate is \
         renewed before that"
    )]
    Clocks {
        /// By how much.
        seconds: u64,
    },
    /// An object that is needed to renew is absent.
    #[error(
        "Secret {object} is absent: `kubectl stayput -n {namespace} init {cluster}` makes it again"
    )]
    Absent {
        /// Its name.
        object: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// Some of the objects are of somebody else.
    #[error(
        "Secret {object} was not made by stayput for this SearchCluster, so none of the managers' \
         certificates is renewed: name another one in spec.manager.caSecret, or delete it, and run \
         `kubectl stayput -n {namespace} init {cluster}`"
    )]
    Mixed {
        /// Its name.
        object: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// What is in an object cannot be used.
    #[error(
        "Secret {object} cannot be used ({problem}): delete it, and run `kubectl stayput -n {namespace} init {cluster}`"
    )]
    Unusable {
        /// Its name.
        object: String,
        /// Why.
        problem: String,
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
    },
    /// The end is near, and it is not renewed.
    #[error("the certificate in Secret {object} expires at {}: renew it", date(*.at))]
    ExpiresSoon {
        /// Name of the Secret.
        object: String,
        /// When, in seconds since the epoch.
        at: u64,
    },
    /// It is over.
    #[error("the certificate in Secret {object} has expired at {}: renew it", date(*.at))]
    Expired {
        /// Name of the Secret.
        object: String,
        /// When, in seconds since the epoch.
        at: u64,
    },
    /// The apiserver's keys are not known.
    #[error("the apiserver's public keys are not known: {why}")]
    KeysUnknown {
        /// Why.
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
    /// When something ends, in seconds since the epoch; none if it is about something else.
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

    /// Why, for programs: the reason of a condition.
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

fn date(at: u64) -> humantime::Rfc3339Timestamp {
    // What a certificate can say ends with the year 9999.
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.min(253_402_300_799)))
}
