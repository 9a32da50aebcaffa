//! Whether a reconciler works, by its Lease.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;

use super::apiserver::{ApiError, Asked};
use super::clock::now;
use super::exit::Exit;
use super::format::rounded_duration;
use stayput_restart::Time;

/// Where `deploy/` puts the reconciler.
pub(super) const NAMESPACE: &str = "stayput";
/// Name of its Lease, its service account and its label.
pub(super) const NAME: &str = "stayput-reconciler";
/// A leader renews its Lease every few seconds. The clocks may differ as well.
const OLD: u64 = 60_000;

/// Whether a reconciler works, as far as we may know that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Reconciler {
    /// The Lease was not read: it says nothing.
    #[default]
    Unknown,
    Works,
    /// And why none works.
    Absent(String),
}

impl Reconciler {
    /// By the Lease, if it can be read.
    pub(super) async fn seen(client: &Client) -> Self {
        Self::look(client).await.unwrap_or_default()
    }

    /// The same.
    ///
    /// # Errors
    /// If the apiserver does not answer.
    pub(super) async fn look(client: &Client) -> Result<Self, ApiError> {
        match lease(client).await {
            Ok(lease) => Ok(why_none(lease.as_ref(), now()).map_or(Self::Works, Self::Absent)),
            Err(error) if error.exit() == Exit::NotReachable => Err(error),
            Err(_) => Ok(Self::Unknown),
        }
    }

    /// Why none works, if that is so.
    pub(super) fn why_absent(&self) -> Option<&str> {
        match self {
            Self::Absent(why) => Some(why),
            Self::Unknown | Self::Works => None,
        }
    }

    /// What to know of it beside the status that it has written, if none works.
    pub(super) fn warning(&self) -> Option<String> {
        self.why_absent().map(|why| {
            format!(
                "{why}; until one works, nothing is done, and what the status shows is of the time \
                 before: `kubectl stayput runbook reconciler_absent`"
            )
        })
    }
}

/// The Lease; none if there is none.
async fn lease(client: &Client) -> Result<Option<Lease>, ApiError> {
    let asked = Asked { client, namespace: NAMESPACE };
    asked.find("leases.coordination.k8s.io", NAME).await
}

/// Why no reconciler works; none if one does.
pub(super) fn why_none(lease: Option<&Lease>, now: Time) -> Option<String> {
    let Some(lease) = lease else {
        return Some(format!(
            "there is no Lease {NAME} in namespace {NAMESPACE}: no reconciler has ever worked there"
        ));
    };
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    if holder.is_empty() {
        return Some(format!("nobody holds the Lease {NAME}: no reconciler is the leader"));
    }
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
    let renewed = renewed.and_then(|time| u64::try_from(time.0.as_millisecond()).ok());
    let age = now.since(Time(renewed.unwrap_or_default()));
    (age > OLD).then(|| {
        format!(
            "the leader {holder} has not renewed its Lease for {}",
            rounded_duration(age / 1000)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_leader_renews_its_lease() {
        let now = Time::parse("2026-11-21T03:10:00Z").unwrap();
        let why = |spec: Value| {
            let lease: Lease = serde_json::from_value(json!({"spec": spec})).unwrap();
            why_none(Some(&lease), now)
        };
        let held = |at: &str| json!({"holderIdentity": "one", "renewTime": at});
        assert_eq!(why(held("2026-11-21T03:09:30.000000Z")), None);
        let old = "the leader one has not renewed its Lease for 10m";
        assert_eq!(why(held("2026-11-21T03:00:00.000000Z")).as_deref(), Some(old));
        assert!(why(json!({})).is_some_and(|why| why.contains("nobody holds")));
        assert!(why_none(None, now).is_some_and(|why| why.contains("ever worked")));
    }

    #[test]
    fn only_who_knows_that_none_works_says_so() {
        assert_eq!(Reconciler::Unknown.warning(), None);
        assert_eq!(Reconciler::Works.warning(), None);
        let warning = Reconciler::Absent("why".to_owned()).warning().unwrap();
        assert!(warning.starts_with("why; until one works, nothing is done"), "{warning}");
    }
}
