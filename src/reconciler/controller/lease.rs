//! Which of several replicas works. Correctness never depends on it: the ledger's compare-and-set
//! and the managers' sequences do not know who asks.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::settings::Election;

/// How long a Lease is good for that nobody renews.
const LIFE: Duration = Duration::from_secs(15);
/// How often it is renewed, or looked at by those who wait.
const RENEWAL: Duration = Duration::from_secs(5);
/// Who has not been able to renew it for so long stops working, before another may begin.
const GIVE_UP: Duration = Duration::from_secs(10);

/// One replica's part in the election.
pub(super) struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The Lease as it was seen last, and since when by our own clock: the clocks of others may be
    /// wrong.
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

    /// Takes part until it is dropped; `leads` says who works.
    pub(super) async fn run(&mut self, leads: &watch::Sender<bool>) {
        loop {
            let held = match timeout(RENEWAL, self.round()).await {
                Ok(Ok(held)) => held,
                Ok(Err(error)) => {
                    tracing::warn!("the Lease {} cannot be had: {error}", self.name);
                    self.still_holds()
                }
                Err(_) => self.still_holds(),
            };
            leads.send_if_modified(|leads| {
                let changed = *leads != held;
                if changed {
                    tracing::info!(leads = held, "election");
                }
                *leads = held;
                changed
            });
            sleep(RENEWAL).await;
        }
    }

    /// Lets it go, so that another need not wait.
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
        // It runs out by itself.
        let _ = timeout(RENEWAL, release).await;
    }

    fn still_holds(&self) -> bool {
        self.renewed.is_some_and(|renewed| renewed.elapsed() < GIVE_UP)
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

    /// Whether nobody holds it any more: unchanged for its own life.
    fn is_free(&mut self, spec: Option<&LeaseSpec>) -> bool {
        let held = spec.and_then(|spec| spec.holder_identity.as_deref());
        if held.is_none_or(str::is_empty) {
            return true;
        }
        let life = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let life = Duration::from_secs(u64::try_from(life).unwrap_or(0)).max(LIFE);
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
            lease_duration_seconds: i32::try_from(LIFE.as_secs()).ok(),
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
            // Somebody else was first; whether it is theirs shows in the next round.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}
