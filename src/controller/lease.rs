//! Leader election among several replicas. The ledger's compare-and-set and the managers' sequences
//! protect against two leaders. Only requests to the engine have neither: they need the [`Lease`].

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as LeaseObject, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::run::Election;

/// Time after which a Lease that is not renewed expires.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Interval at which the leader renews the Lease, and the other replicas read it.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of one attempt to acquire or renew the Lease; short enough for a second attempt before
/// [`RENEW_DEADLINE`].
const ROUND_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between a failed attempt and the next.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Age of the last renewal at which a leader stops counting on the Lease: another replica may take it soon.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// The fence of this replica: tells if it holds the Lease at this moment.
#[derive(Debug, Clone)]
pub(super) struct Lease(Option<watch::Receiver<Option<Instant>>>);

impl Lease {
    /// A Lease for a run without election, in which nobody else can lead.
    pub(super) const fn not_needed() -> Self {
        Self(None)
    }

    /// A Lease that nobody renews.
    #[cfg(test)]
    pub(super) fn lost_for_test() -> Self {
        Self(Some(watch::Sender::new(None).subscribe()))
    }

    /// True if the Lease was renewed less than [`RENEW_DEADLINE`] ago.
    pub(super) fn is_held(&self) -> bool {
        let renewed = self.0.as_ref().map(|renewed| *renewed.borrow());
        renewed.is_none_or(|renewed| renewed.is_some_and(|at| at.elapsed() < RENEW_DEADLINE))
    }

    /// Completes once the Lease is not held, at once if it is not now.
    pub(super) async fn lost(&self) {
        let Some(renewed) = &self.0 else { return std::future::pending().await };
        while self.is_held() {
            let last = *renewed.borrow();
            sleep_until(last.unwrap_or_else(Instant::now) + RENEW_DEADLINE).await;
        }
    }
}

/// One replica's part in the election.
pub(super) struct Candidate {
    api: Api<LeaseObject>,
    name: String,
    identity: String,
    /// The Lease as it was read last, and since when it has been the same by our own clock: those of others
    /// may be wrong.
    seen: Option<(Option<LeaseSpec>, Instant)>,
    /// The Lease as we wrote it last: it is renewed on this version without being read. `None` after any
    /// other answer.
    written: Option<LeaseObject>,
    /// Time of the last acquisition or renewal, while the Lease is ours.
    renewed: watch::Sender<Option<Instant>>,
}

impl Candidate {
    pub(super) fn new(client: kube::Client, election: &Election, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client, &election.namespace),
            name: election.name.clone(),
            identity: identity.to_owned(),
            seen: None,
            written: None,
            renewed: watch::Sender::new(None),
        }
    }

    pub(super) fn lease(&self) -> Lease {
        Lease(Some(self.renewed.subscribe()))
    }

    /// Takes part until it is dropped; sets `leads` to true while this replica is the leader. A leader that
    /// gets no answer stays one, without the Lease: engines that it has stopped wait for it.
    pub(super) async fn run(&mut self, leads: &watch::Sender<bool>) {
        loop {
            let began = Instant::now();
            let done = match timeout(ROUND_TIMEOUT, self.round()).await {
                Ok(Ok(held)) => Ok(held),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {ROUND_TIMEOUT:?}")),
            };
            let (held, next) = match done {
                Ok(held) => (held, began + RENEW_INTERVAL),
                Err(why) => {
                    tracing::warn!("cannot acquire or renew the Lease {}: {why}", self.name);
                    (*leads.borrow(), Instant::now() + RETRY_PAUSE)
                }
            };
            leads.send_if_modified(|leads| {
                let changed = *leads != held;
                if changed {
                    tracing::info!(leads = held, "leader election");
                }
                *leads = held;
                changed
            });
            sleep_until(next).await;
        }
    }

    /// Releases the Lease, so that another replica need not wait.
    pub(super) async fn release(&mut self) {
        if self.renewed.send_replace(None).is_none() {
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

    /// Acquires, renews or reads the Lease once; true if it is ours now.
    async fn round(&mut self) -> kube::Result<bool> {
        let began = Instant::now();
        if let Some(mut lease) = self.written.take() {
            lease.spec = Some(self.claim(lease.spec));
            match self.api.replace(&self.name, &PostParams::default(), &lease).await {
                // Another client may have written the Lease (409), or deleted it (500): read it.
                Err(kube::Error::Api(_)) => {}
                result => return self.wrote(began, result),
            }
        }
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let lease = LeaseObject { metadata, spec: Some(self.claim(None)) };
            let created = self.api.create(&PostParams::default(), &lease).await;
            return self.wrote(began, created);
        };
        let ours = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_ref())
            == Some(&self.identity);
        if !ours && !self.is_free(lease.spec.as_ref()) {
            self.renewed.send_replace(None);
            return Ok(false);
        }
        lease.spec = Some(self.claim(lease.spec));
        let replaced = self.api.replace(&self.name, &PostParams::default(), &lease).await;
        self.wrote(began, replaced)
    }

    /// True if no replica holds the Lease: it is released, or was not renewed for its duration.
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

    /// Records the result of a write. A renewal counts from before the request: for other replicas it may
    /// have begun then.
    fn wrote(&mut self, began: Instant, result: kube::Result<LeaseObject>) -> kube::Result<bool> {
        match result {
            Ok(written) => {
                self.written = Some(written);
                self.renewed.send_replace(Some(began));
                Ok(true)
            }
            // Another replica wrote first; the next round shows whether it is the leader.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.renewed.send_replace(None);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use stayput_standin::apiserver::{ApiServer, Fault, How};
    use stayput_standin::harness::paused_clock;

    fn renewed_before(span: Duration) -> (watch::Sender<Option<Instant>>, Lease) {
        let renewed = watch::Sender::new(Instant::now().checked_sub(span));
        let lease = Lease(Some(renewed.subscribe()));
        (renewed, lease)
    }

    #[tokio::test] // proves RESTART-119
    async fn a_lease_that_is_not_renewed_is_lost_before_another_may_take_it() {
        let (renewed, lease) = renewed_before(LEASE_DURATION - RENEW_INTERVAL);
        assert!(!lease.is_held());
        lease.lost().await;
        renewed.send_replace(Some(Instant::now()));
        assert!(lease.is_held());
        assert!(timeout(Duration::ZERO, lease.lost()).await.is_err());
        renewed.send_replace(None);
        assert!(!lease.is_held(), "another replica has it");
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_the_loss_goes_on_when_the_time_is_over_and_not_after_a_renewal() {
        let left = Duration::from_millis(50);
        let (renewed, lease) = renewed_before(RENEW_DEADLINE - left);
        assert!(lease.is_held());
        lease.lost().await;
        renewed.send_replace(Instant::now().checked_sub(RENEW_DEADLINE - left));
        let renew = async { renewed.send_replace(Some(Instant::now())) };
        let lost = async { timeout(left * 3, lease.lost()).await };
        let (lost, _) = tokio::join!(lost, renew);
        assert!(lost.is_err(), "it was renewed meanwhile");
    }

    #[tokio::test]
    async fn without_an_election_it_is_not_needed() {
        let lease = Lease::not_needed();
        assert!(lease.is_held());
        assert!(timeout(Duration::ZERO, lease.lost()).await.is_err());
    }

    #[tokio::test(start_paused = true)] // proves RESTART-121
    async fn one_slow_renewal_does_not_cost_the_lease() {
        paused_clock::in_steps();
        for how in [How::Hang, How::LoseAnswer, How::Refuse(503)] {
            let server = ApiServer::start().await.expect("a stand-in apiserver");
            let election = Election { namespace: "default".into(), name: "leader".into() };
            let config = crate::apiserver::bounded(server.config());
            let client = kube::Client::try_from(config).expect("a client");
            let mut candidate = Candidate::new(client, &election, "a");
            let (lease, (leads, mut leading)) = (candidate.lease(), watch::channel(false));
            let lost = async {
                leading.wait_for(|leads| *leads).await.expect("an election");
                server.inject(Fault::new(how).resource("leases"));
                lease.lost().await;
            };
            let over = async {
                tokio::select! {
                    () = lost => {}
                    () = candidate.run(&leads) => {}
                }
            };
            assert!(timeout(LEASE_DURATION * 4, over).await.is_err(), "{how:?}");
            assert!(server.is_faultless(), "{how:?}");
        }
    }
}
