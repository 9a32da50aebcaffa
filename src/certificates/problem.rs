//! Problems with the certificates and keys of a cluster, for people.

use std::time::{Duration, UNIX_EPOCH};

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

fn date(at: u64) -> humantime::Rfc3339Timestamp {
    // What a certificate can say ends with the year 9999.
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.min(253_402_300_799)))
}
