//! Whether a reconciler works, by its Lease.

use k8s_openapi::api::coordination::v1::Lease;

use super::apiserver::{ApiError, Asked};
use super::clock::now;
use super::format::rounded_duration;
use super::session::Session;
use stayput_restart::Time;

/// Where `deploy/` puts the reconciler.
pub(super) const NAMESPACE: &str = "stayput";
/// Name of its Lease, its service account and its label.
pub(super) const NAME: &str = "stayput-reconciler";
/// A leader renews its Lease every few seconds. The clocks may differ as well.
const OLD: u64 = 60_000;

/// Whether a reconciler is known to work. A Lease that cannot be read says nothing.
pub(super) async fn works(session: &Session) -> bool {
    matches!(lease(session).await, Ok(lease) if why_none(lease.as_ref(), now()).is_none())
}

/// The Lease; none if there is none.
pub(super) async fn lease(session: &Session) -> Result<Option<Lease>, ApiError> {
    let asked = Asked { client: &session.client, namespace: NAMESPACE };
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
}
