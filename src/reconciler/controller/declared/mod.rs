//! Makes the objects of a declared cluster. What is to be made is decided by `stayput_declare`; here
//! are the calls.

mod apply;
mod collect;
mod read;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff;
use super::context::Context;
use super::settings::Account;
use crate::cluster::SearchCluster;
use apply::Applied;
use stayput_declare as declare;
use stayput_restart::{Report, Time};
pub(super) use verdict::Verdict;

/// While something is under way.
const WAITING_INTERVAL: Duration = Duration::from_secs(2);
/// While a person has to do something, perhaps about objects that are not watched.
const REFUSED_INTERVAL: Duration = Duration::from_secs(10);
/// At rest: what people have changed or deleted by hand is made again.
const REST_INTERVAL: Duration = Duration::from_secs(300);
/// The account that `deploy/` gives to the reconciler.
const DEFAULT_ACCOUNT: &str = "stayput:stayput-reconciler";

/// What was done about the objects of one declared cluster. A new process knows nothing of it, and
/// applies everything once more, which changes nothing.
#[derive(Debug)]
pub(super) struct Declared {
    account: String,
    applied: Applied,
    /// Since when Secrets are not needed, by uid.
    unneeded: BTreeMap<String, u64>,
    verdict: Verdict,
    failures: u32,
    /// For which generation, and when it is due again.
    next: Option<(i64, Instant)>,
}

impl Declared {
    pub(super) fn new(account: Option<&Account>) -> Self {
        let named = |account: &Account| format!("{}:{}", account.namespace, account.name);
        Self {
            account: account.map_or(DEFAULT_ACCOUNT.to_owned(), named),
            applied: Applied::default(),
            unneeded: BTreeMap::new(),
            verdict: Verdict::Done,
            failures: 0,
            next: None,
        }
    }

    fn is_due(&self, generation: i64) -> bool {
        let is_later = |(seen, at): (i64, Instant)| seen == generation && at > Instant::now();
        !self.next.is_some_and(is_later)
    }

    /// When it is due again; none for a cluster that is not declared.
    pub(super) fn due_in(&self) -> Option<Duration> {
        self.next.map(|(_, at)| at.saturating_duration_since(Instant::now()))
    }

    /// The report, with what keeps the declaration from being carried out.
    pub(super) fn report(&self, report: Report, now: Time) -> Report {
        self.verdict.report(report, now)
    }
}

/// Makes what is declared, if it is due.
pub(super) async fn carry_out(cx: &mut Context, cluster: &SearchCluster) {
    let generation = cluster.metadata.generation.unwrap_or_default();
    if cluster.metadata.deletion_timestamp.is_some() || !cx.declared.is_due(generation) {
        return;
    }
    let Some(declaration) = cluster.declaration(&cx.declared.account) else { return };
    let verdict = attempt(cx, cluster, &declaration).await;
    let declared = &mut cx.declared;
    declared.failures = match verdict {
        Verdict::Failed(_) => declared.failures.saturating_add(1),
        Verdict::Done | Verdict::Waiting(_) | Verdict::Refused(_) | Verdict::Foreign(_) => 0,
    };
    let pause = match verdict {
        Verdict::Done => REST_INTERVAL,
        Verdict::Waiting(_) => WAITING_INTERVAL,
        Verdict::Refused(_) | Verdict::Foreign(_) => REFUSED_INTERVAL,
        Verdict::Failed(_) => backoff::pause(declared.failures),
    };
    verdict.log(&declared.verdict);
    declared.verdict = verdict;
    declared.next = Some((generation, Instant::now() + pause));
}

async fn attempt(
    cx: &mut Context,
    cluster: &SearchCluster,
    declaration: &declare::Cluster,
) -> Verdict {
    // Apiserver: what is there.
    let mut observed = match read::observed(&cx.api, declaration).await {
        Ok(observed) => observed,
        Err(error) => return Verdict::Failed(error),
    };
    if observed.bootstrap.as_ref().is_some_and(|names| !names.is_empty()) {
        // Engine: whether it has formed a cluster.
        observed.formed = cx.observer.has_formed(cluster).await;
    }

    // No outside system: what to make now.
    let plan = match declare::plan(declaration, &observed) {
        Ok(plan) => plan,
        Err(refusals) => return Verdict::Refused(refusals),
    };

    // Apiserver: make it.
    match cx.declared.applied.make(&cx.api, declaration, &plan.objects).await {
        Ok(true) => cx.observer.reread_sources(),
        Ok(false) => {}
        Err(verdict) => {
            // What was made before the failure counts, too.
            cx.observer.reread_sources();
            return verdict;
        }
    }

    // Apiserver: delete what nobody needs any more.
    let unneeded = std::mem::take(&mut cx.declared.unneeded);
    match collect::collect(&cx.api, declaration, &observed, unneeded).await {
        Ok(unneeded) => cx.declared.unneeded = unneeded,
        Err(error) => return Verdict::Failed(error),
    }
    match (plan.waiting, plan.forming) {
        (Some(waiting), _) => Verdict::Waiting(waiting),
        (None, true) => Verdict::Waiting(format!(
            "the cluster has not formed yet: `kubectl --namespace {} get pods --selector {}={}` shows \
             its pods",
            declaration.namespace,
            declare::CLUSTER,
            declaration.name
        )),
        (None, false) => Verdict::Done,
    }
}
