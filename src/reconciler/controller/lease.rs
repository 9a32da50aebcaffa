//! Leader election among several replicas. Correctness never depends on it: the ledger's
//! compare-and-set and the managers' sequences protect against two leaders.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::settings::Election;

/// How long a Lease is valid that is not renewed.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How often the leader renews it, and the other replicas read it.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// A leader that could not renew it for so long stops, before another may begin.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// One replica's part in the election.
pub(super) struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The Lease as it was read last, and since when by our own clock: those of others may be wrong.
    seen: Option<(Option<LeaseSpec>, Instant)>,
    renewed: Option<Instant>,
}

impl Candidate {
    pub(super) fn new(client: kube::Client, election: &Election, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client, &election.namespace),
            name: election.name.clone(),
            identity: identity.to_owned(),
            seen: None,
            renewed: None,
        }
    }

    /// Takes part until it is dropped; `leads` is whether this replica is the leader.
    pub(super) async fn run(&mut self, leads: &watch::Sender<bool>) {
        loop {
            let held = match timeout(RENEW_INTERVAL, self.round()).await {
                Ok(Ok(held)) => held,
                Ok(Err(error)) => {
                    tracing::warn!("cannot acquire or renew the Lease {}: {error}", self.name);
                    self.still_holds()
                }
                Err(_) => self.still_holds(),
            };
            leads.send_if_modified(|leads| {
                let changed = *leads != held;
                if changed {
                    tracing::info!(leads = held, "leader election");
                }
                *leads = held;
                changed
            });
            sleep(RENEW_INTERVAL).await;
        }
    }

    /// Releases the Lease, so that another replica need not wait.
    pub(super) async fn release(&mut self) {
        if self.renewed.take().is_none() {
            return;
        }
        let release = async {
            let mut lease = self.api.get(&self.name).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_ref() == Some(&self.identity) {
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.api.replace(&self.name, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        // If this fails, the Lease expires.
        let _ = timeout(RENEW_INTERVAL, release).await;
    }

    fn still_holds(&self) -> bool {
        self.renewed.is_some_and(|renewed| renewed.elapsed() < RENEW_DEADLINE)
    }

    /// Whether it is ours now.
    async fn round(&mut self) -> kube::Result<bool> {
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.claim(None)) };
            return self.wrote(self.api.create(&PostParams::default(), &lease).await);
        };
        let ours = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_ref())
            == Some(&self.identity);
        if !ours && !self.is_free(lease.spec.as_ref()) {
            self.renewed = None;
            return Ok(false);
        }
        lease.spec = Some(self.claim(lease.spec));
        self.wrote(self.api.replace(&self.name, &PostParams::default(), &lease).await)
    }

    /// Whether no replica holds it: it is released, or was not renewed for its duration.
    fn is_free(&mut self, spec: Option<&LeaseSpec>) -> bool {
        let held = spec.and_then(|spec| spec.holder_identity.as_deref());
        if held.is_none_or(str::is_empty) {
            return true;
        }
        let life = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let life = Duration::from_secs(u64::try_from(life).unwrap_or(0)).max(LEASE_DURATION);
        match &self.seen {
            Some((seen, since)) if seen.as_ref() == spec => since.elapsed() >= life,
            Some(_) | None => {
                self.seen = Some((spec.cloned(), Instant::now()));
                false
            }
        }
    }

    fn claim(&self, before: Option<LeaseSpec>) -> LeaseSpec {
        let before = before.unwrap_or_default();
        let now = Some(MicroTime(Timestamp::now()));
        let ours = before.holder_identity.as_ref() == Some(&self.identity);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: if ours { before.acquire_time.clone() } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!ours)),
            ..before
        }
    }

    fn wrote(&mut self, result: kube::Result<Lease>) -> kube::Result<bool> {
        match result {
            Ok(_) => {
                self.renewed = Some(Instant::now());
                Ok(true)
            }
            // Another replica wrote first; the next round shows whether it is the leader.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}
