//! Makes the objects of a declared cluster, and reports the progress. `stayput_declare` decides what to make;
//! this module makes the calls.

mod leave;
mod objects;

use std::collections::BTreeMap;
use std::time::Duration;

use stayput_declare::{self as declare, Bootstrap, ForeignClaim, Refusal};
use stayput_kube_access::cluster::SearchCluster;
use stayput_kube_access::names::reconciler;
use stayput_restart::{LeavePlan, Policy, Report, Snapshot, Time, leave_plan};
use tokio::time::Instant;

use crate::context::Context;
pub(crate) use crate::declared::leave::ShrinkingSets;
use crate::declared::objects::{Applied, ExistingObjects};
use crate::effective_spec::EffectiveSpec;
use crate::failure::Failure;
use crate::observe::now;
use crate::run::Account;
use crate::status::{Until, blocked, ledger_of};

/// Interval while a step is under way.
const WAITING_INTERVAL: Duration = Duration::from_secs(2);
/// Interval while a person has to do something, perhaps about objects that are not watched.
const REFUSED_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between two lists of the Secrets, to delete unneeded ones.
const COLLECT_INTERVAL: Duration = Duration::from_secs(60);
/// Interval at rest: objects that people have changed or deleted by hand are made again.
const REST_INTERVAL: Duration = Duration::from_secs(300);

/// Progress of making the objects of one declared cluster. A new process starts empty and applies everything
/// once more, which changes nothing.
#[derive(Debug)]
pub(super) struct Declared {
    account: String,
    applied: Applied,
    /// Time since which each Secret is unneeded, in milliseconds since the epoch, by uid.
    unneeded: BTreeMap<String, u64>,
    collected: Option<Instant>,
    verdict: Verdict,
    /// The problem that was logged last.
    problem: Option<String>,
    failures: u32,
    /// Generation that was carried out, and the time of the next attempt.
    next: Option<(i64, Instant)>,
}

impl Declared {
    pub(super) fn new(account: Option<&Account>) -> Self {
        let named = |account: &Account| format!("{}:{}", account.namespace, account.name);
        Self {
            account: account.map_or(reconciler::ACCOUNT.to_owned(), named),
            applied: Applied::default(),
            unneeded: BTreeMap::new(),
            collected: None,
            verdict: Verdict::Done,
            problem: None,
            failures: 0,
            next: None,
        }
    }

    fn is_due(&self, generation: i64) -> bool {
        let is_later = |(seen, at): (i64, Instant)| seen == generation && at > Instant::now();
        !self.next.is_some_and(is_later)
    }

    /// Time until the next attempt; `None` for a cluster that is not declared.
    pub(super) fn due_in(&self) -> Option<Duration> {
        self.next.map(|(_, at)| at.saturating_duration_since(Instant::now()))
    }

    /// Makes the next attempt as soon as possible.
    pub(super) fn attempt_now(&mut self) {
        self.next = None;
    }

    /// The report, with the reason why the declaration is not carried out yet. Logs a problem that differs from
    /// the last one.
    pub(super) fn report(
        &mut self,
        report: Report,
        snapshot: &Snapshot,
        policy: &Policy,
    ) -> Report {
        let leaving = self.verdict.with(leave_plan(snapshot, policy));
        let verdict = leaving.as_ref().unwrap_or(&self.verdict);
        let problem = verdict.problem().map(|(_, _, message)| message);
        if let Some(problem) = problem.as_ref().filter(|_| problem != self.problem) {
            tracing::warn!("the declaration is not carried out: {problem}");
        }
        let report = verdict.report(report, snapshot.now);
        self.problem = problem;
        report
    }
}

/// Makes what is declared, if it is due, and finds the node sets from which nodes leave.
pub(super) async fn carry_out(cx: &mut Context, cluster: &SearchCluster, spec: &EffectiveSpec) {
    let generation = cluster.metadata.generation.unwrap_or_default();
    let is_made = cluster.is_declared() && cluster.metadata.deletion_timestamp.is_none();
    // A cluster that is deleted, or not declared any more, must leave no settings on the engine.
    if !(is_made || leave::owes(cluster)) {
        cx.observer.shrinking_sets = None;
        return;
    }
    if !cx.memory.declared.is_due(generation) {
        return;
    }
    cx.observer.shrinking_sets = None;
    let verdict = match Box::pin(attempt(cx, cluster, spec, is_made)).await {
        Ok(verdict) => verdict,
        Err(failure) if failure.is_conflict() => {
            tracing::info!("another client wrote first, reading again: {failure}");
            cx.refresh_cluster().await;
            Verdict::Waiting("another client wrote first".to_owned())
        }
        Err(failure) => Verdict::Failed(failure),
    };
    let declared = &mut cx.memory.declared;
    let has_failed = matches!(verdict, Verdict::Failed(_));
    declared.failures = if has_failed { declared.failures.saturating_add(1) } else { 0 };
    let pause = match verdict {
        Verdict::Failed(_) => crate::requeue::pause(declared.failures),
        Verdict::Done if cx.observer.shrinking_sets.is_none() => REST_INTERVAL,
        Verdict::Waiting(_) => WAITING_INTERVAL,
        Verdict::Done
        | Verdict::Kept(_)
        | Verdict::Refused(_)
        | Verdict::Foreign(_)
        | Verdict::ForeignClaims(_) => REFUSED_INTERVAL,
    };
    declared.verdict = verdict;
    declared.next = Some((generation, Instant::now() + pause));
}

/// One attempt: its verdict.
async fn attempt(
    cx: &mut Context,
    cluster: &SearchCluster,
    spec: &EffectiveSpec,
    is_made: bool,
) -> Result<Verdict, Failure> {
    // Apiserver: the existing objects.
    let mut found = objects::found(&cx.clients.api, cluster).await?;
    let declaration = cluster.declaration(&cx.memory.declared.account).filter(|_| is_made);
    let verdict = match &declaration {
        Some(declaration) => make(cx, cluster, spec, declaration, &mut found).await?,
        None => Verdict::Done,
    };
    if let Some(unfinished) = verdict.unfinished() {
        let sets = leave::shrinking_sets(cluster, declaration.as_ref(), found, unfinished);
        cx.observer.shrinking_sets = sets;
    }
    Ok(verdict)
}

/// Makes the declared objects.
async fn make(
    cx: &mut Context,
    cluster: &SearchCluster,
    spec: &EffectiveSpec,
    declaration: &declare::Cluster,
    found: &mut ExistingObjects,
) -> Result<Verdict, Failure> {
    let observed = &mut found.observed;
    if observed.bootstrap.as_ref().is_some_and(declare::Bootstrap::is_forming) {
        // Engine: has it formed a cluster?
        observed.formed = cx.observer.has_formed(&ledger_of(cluster), &spec.spec).await;
    }
    if declare::makes_claims(declaration, observed) {
        // Apiserver: claims that new nodes would mount.
        observed.claims = objects::claims(&cx.clients.api, &declaration.namespace).await?;
    }

    // No outside system: the objects to make now.
    let plan = match declare::plan(declaration, observed) {
        Ok(plan) => plan,
        Err(refusals) => return Ok(Verdict::Refused(refusals)),
    };

    let foreign = declare::foreign_claims(declaration, observed);
    if !foreign.is_empty() {
        return Ok(Verdict::ForeignClaims(foreign));
    }
    if let Some(claim) = declare::going_claim(declaration, observed) {
        return Ok(Verdict::Waiting(format!(
            "PersistentVolumeClaim {claim} is being deleted, and a new node would mount it: nodes are made \
             when it is gone"
        )));
    }

    // Apiserver: make it.
    let made = cx
        .memory
        .declared
        .applied
        .make((&cx.clients.api, &cx.clients.lease), declaration, &plan.objects)
        .await;
    if !matches!(made, Ok(false)) {
        // Objects that were made before a failure count, too.
        cx.observer.reread_what_is_made();
    }
    match made {
        Ok(_) => {}
        // Everything is read again.
        Err(Verdict::Failed(failure)) if failure.is_conflict() => return Err(failure),
        Err(verdict) => return Ok(verdict),
    }
    if !cx.clients.lease.is_held() {
        return Err(Failure::LeaseLost);
    }

    // Apiserver: delete unneeded Secrets.
    let declared = &mut cx.memory.declared;
    if declared.collected.is_none_or(|at| at.elapsed() >= COLLECT_INTERVAL) {
        let since = &declared.unneeded;
        declared.unneeded =
            objects::collect(&cx.clients.api, declaration, observed, since, now().0).await?;
        declared.collected = Some(Instant::now());
    }
    let waiting = plan.waiting.or_else(|| not_formed(declaration, &plan.bootstrap));
    Ok(waiting.map_or(Verdict::Done, Verdict::Waiting))
}

/// Message for a cluster that has not formed yet: how to find out why.
fn not_formed(cluster: &declare::Cluster, bootstrap: &Bootstrap) -> Option<String> {
    let pods = format!(
        "the cluster has not formed yet: `kubectl --namespace {} get pods --selector {}={}` shows its pods",
        cluster.namespace,
        declare::CLUSTER,
        cluster.name
    );
    match bootstrap {
        Bootstrap::Formed => None,
        Bootstrap::Masters(_) => Some(pods),
        Bootstrap::Claims(claims) => {
            let first = claims.first().map_or("", String::as_str);
            Some(format!(
                "{pods}. No first masters are named, since volume claims were there before ({first}, {} in \
                 all): its nodes come back with what is on them. If they cannot: docs/declared.md, {}",
                claims.len(),
                declare::NEVER_FORMED
            ))
        }
    }
}

/// Progress of carrying out the declaration.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// All declared objects exist.
    Done,
    /// Some objects or nodes are still to come or to go; the message says what that waits for.
    Waiting(String),
    /// The declaration cannot be carried out; nothing was changed.
    Refused(Vec<Refusal>),
    /// Objects were made, but nodes do not leave before a person changes something.
    Kept(String),
    /// Objects of another owner have names that are needed; nothing was changed.
    Foreign(Vec<String>),
    /// New nodes would mount volume claims of another owner; nothing was changed.
    ForeignClaims(Vec<ForeignClaim>),
    /// A call has failed; objects that were made before it exist.
    Failed(Failure),
}

/// Limit of the leaving nodes, or claims, that a message names.
const NAMED: usize = 3;

impl Verdict {
    /// Why objects are still to be made, if any are; `None` if a problem keeps nodes from leaving.
    fn unfinished(&self) -> Option<Option<String>> {
        match self {
            Self::Done => Some(None),
            Self::Waiting(waiting) => Some(Some(waiting.clone())),
            Self::Kept(_)
            | Self::Refused(_)
            | Self::Foreign(_)
            | Self::ForeignClaims(_)
            | Self::Failed(_) => None,
        }
    }

    /// The verdict with the progress of the nodes that leave, if it is another one.
    fn with(&self, plan: LeavePlan) -> Option<Self> {
        let waiting = self.unfinished()?;
        if let Some(refusal) = plan.refusal {
            return Some(Self::Kept(refusal));
        }
        if plan.nodes.is_empty() {
            return None;
        }
        let nodes = plan.nodes.iter().take(NAMED);
        let nodes = nodes.map(|(node, how_far)| format!("{node} leaves: {how_far}"));
        let mut all: Vec<String> = waiting.into_iter().chain(nodes).collect();
        if plan.nodes.len() > NAMED {
            all.push(format!("{} more nodes leave", plan.nodes.len() - NAMED));
        }
        Some(Self::Waiting(all.join("; ")))
    }

    /// Code, reason and message of a problem that is not solved by waiting.
    fn problem(&self) -> Option<(&'static str, &'static str, String)> {
        match self {
            Self::Done | Self::Waiting(_) => None,
            Self::Refused(refusals) => {
                let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                let message = format!("{}; nothing of the cluster was changed", all.join("; "));
                Some(("declaration_refused", "DeclarationRefused", message))
            }
            Self::Kept(refusal) => {
                Some(("leave_refused", "LeaveRefused", format!("{refusal}; no node leaves")))
            }
            Self::Foreign(objects) => Some((
                "foreign_object",
                "ForeignObject",
                format!(
                    "{} exists and is not of this SearchCluster: delete it, or choose another name. \
                     Nothing of the cluster was changed",
                    objects.join(", ")
                ),
            )),
            Self::ForeignClaims(claims) => {
                let mut all: Vec<String> =
                    claims.iter().take(NAMED).map(ToString::to_string).collect();
                if claims.len() > NAMED {
                    all.push(format!("and {} more", claims.len() - NAMED));
                }
                let message = format!("{}. Nothing of the cluster was changed", all.join("; "));
                Some(("foreign_object", "ForeignObject", message))
            }
            Self::Failed(error) => {
                Some(("declaration_failed", "DeclarationFailed", error.to_string()))
            }
        }
    }

    /// The report with the problem or the wait. A rule that blocks keeps its code.
    fn report(&self, mut report: Report, now: Time) -> Report {
        if let Self::Waiting(waiting) = self
            && report.message.is_none()
        {
            report.message = Some(waiting.clone());
        }
        match self.problem() {
            None => report,
            Some((_, _, message)) if report.blocked.is_some() => {
                let before = report.message.unwrap_or_default();
                report.message = Some(format!("{before}; in addition: {message}"));
                report
            }
            Some((code, reason, message)) => {
                let until = match self {
                    Self::Refused(_)
                    | Self::Kept(_)
                    | Self::Foreign(_)
                    | Self::ForeignClaims(_) => Until::APerson,
                    Self::Done | Self::Waiting(_) | Self::Failed(_) => Until::Later,
                };
                blocked(report, code, reason, message, until, now)
            }
        }
    }
}

#[cfg(test)]
mod tests;
