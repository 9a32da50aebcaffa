//! Keeps the managers' certificates and the copy of the apiserver's keys valid, and reports them.
//! `stayput_certificates` decides what to write. Changes only objects that `kubectl stayput init` made, each
//! write on the version that was read; absent ones are reported.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stayput_certificates::key_set::{KeySet, Unpublished};
use stayput_certificates::names::{KEY_SET, SecretNames};
use stayput_certificates::{CertificateFacts, Problem, Step, decide, key_set};
use stayput_http::pem::date;
use stayput_kube_access::certificates::{
    DISCOVERY_PATH, KEY_SET_PATH, Secrets, held, key_set_object, published,
};
use stayput_kube_access::cluster::{Auth, SearchCluster};
use stayput_restart::{Condition, Event, Reason, Report, Time};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::context::Context;
use crate::effective_spec::EffectiveSpec;
use crate::failure::Failure;
use crate::observe::now;

/// Interval between two reads of everything.
const INTERVAL: Duration = Duration::from_secs(300);
/// Interval after a failure.
const FAILED_INTERVAL: Duration = Duration::from_secs(30);
/// Limit of the steps of one run; more than there are.
const MAX_STEPS: usize = 8;

/// Certificates and keys of one cluster, as last read, and the time of the next read.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    unpublished: Unpublished,
    next: Option<Instant>,
    pub(super) seen: Seen,
}

impl Certificates {
    /// Time until the next read.
    pub(super) fn due_in(&self) -> Option<Duration> {
        self.next.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// Renews certificates and keys that are due, if it is time to read them.
pub(super) async fn carry_out(cx: &mut Context, cluster: &SearchCluster, spec: &EffectiveSpec) {
    let is_early = cx.memory.certificates.next.is_some_and(|at| at > Instant::now());
    if is_early || cluster.metadata.deletion_timestamp.is_some() {
        return;
    }
    let mut seen = Seen::default();
    let result = attempt(cx, cluster, spec, &mut seen).await;
    let pause = match result {
        Ok(()) => INTERVAL,
        Err(failure) => {
            tracing::warn!("cannot maintain certificates and keys: {failure}");
            seen.failure = Some(failure.to_string());
            FAILED_INTERVAL
        }
    };
    cx.memory.certificates.next = Some(Instant::now() + pause);
    let before = std::mem::replace(&mut cx.memory.certificates.seen, seen);
    if let Some(message) = cx.memory.certificates.seen.news(&before) {
        send(cx, cluster, Reason::CertificateNotRenewed, message);
    }
}

async fn attempt(
    cx: &mut Context,
    cluster: &SearchCluster,
    spec: &EffectiveSpec,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let mut names = SecretNames::of(cx.cluster.namespace(), cx.cluster.name());
    let manager = &spec.spec.manager;
    names.trusted.clone_from(&manager.ca_secret);
    keep_certificates(cx, cluster, &manager.server_name, &names, seen).await?;
    match &spec.checked.auth {
        Auth::ServiceAccountToken => keep_keys(cx, cluster, seen).await,
        Auth::JwtKey { .. } | Auth::ClientCertificate { .. } => Ok(()),
    }
}

async fn keep_certificates(
    cx: &mut Context,
    cluster: &SearchCluster,
    server_name: &str,
    names: &SecretNames,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let namespace = cx.cluster.namespace().to_owned();

    // Apiserver: the existing Secrets.
    let objects = cx.clients.api.objects::<Secret>(&namespace);
    let mut secrets = Secrets {
        authority: objects.find(&names.authority).await?,
        trusted: objects.find(&names.trusted).await?,
        serving: objects.find(&names.serving).await?,
    };
    let mut clock = None;
    for _ in 0..MAX_STEPS {
        // No outside system: the next due step.
        let now = now().0 / 1000;
        let mut facts = secrets.facts(names, server_name, now);
        facts.clock_differs = clock;
        let decision = decide(&facts);
        seen.note(&facts, decision.problems);
        let Some(step) = decision.step else { return Ok(()) };

        // Apiserver: its clock. A certificate with a wrong date would keep us from every manager.
        if clock.is_none() {
            let date = cx.clients.api.time().await?;
            clock = Some(date.map_or(0, |date| date.abs_diff(now)));
            continue;
        }

        // Apiserver: write it, as the leader.
        if !cx.clients.lease.is_held() {
            return Err(Failure::LeaseLost);
        }
        let change =
            secrets.change(&step, names, server_name, now).map_err(Failure::Certificate)?;
        let there = secrets.of(&step);
        let Some(found) = &*there else { return Ok(()) };
        let patch = change.patch(found);
        *there = Some(objects.merge(&change.name, &patch).await?);
        let message = format!("Secret {}: {}", change.name, done(&step));
        send(cx, cluster, Reason::CertificateRenewed, message);
    }
    Ok(())
}

const fn done(step: &Step) -> &'static str {
    match step {
        Step::MakeAuthority => "a new CA; managers are given certificates of it once it is trusted",
        Step::Trust(all) if all.len() > 1 => "the new CA is trusted beside the last one",
        Step::Trust(_) => "only the newest CA is trusted from now on",
        Step::Issue => "a new certificate; managers use it when the kubelets have mounted it",
    }
}

async fn keep_keys(
    cx: &mut Context,
    cluster: &SearchCluster,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let namespace = cx.cluster.namespace().to_owned();

    // Apiserver: the managers' keys, and those that it publishes.
    let objects = cx.clients.api.objects::<ConfigMap>(&namespace);
    let Some(there) = objects.find(KEY_SET).await? else {
        return Ok(());
    };
    let published = read(&cx.clients.api).await.unwrap_or_else(|error| Err(error.to_string()));

    // No outside system: the keys that managers should have.
    let decision = key_set::decide(&key_set::KeySetFacts {
        namespace: namespace.clone(),
        cluster: cx.cluster.name().to_owned(),
        now: now().0 / 1000,
        published,
        held: Some(held(&there)),
        unpublished: cx.memory.certificates.unpublished.clone(),
    });
    cx.memory.certificates.unpublished = decision.unpublished;
    seen.problems.extend(decision.problem);

    // Apiserver: write it, as the leader.
    let Some(set) = decision.write else { return Ok(()) };
    if !cx.clients.lease.is_held() {
        return Err(Failure::LeaseLost);
    }
    let patch = key_set_object(&set, Some(&there));
    objects.merge(KEY_SET, &patch).await?;
    let message = format!("ConfigMap {KEY_SET}: the apiserver publishes other keys");
    send(cx, cluster, Reason::KeysRenewed, message);
    Ok(())
}

async fn read(api: &Apiserver) -> Result<Result<KeySet, String>, ApiError> {
    let discovery = api.document(DISCOVERY_PATH).await?;
    let keys = api.document(KEY_SET_PATH).await?;
    Ok(published(&discovery, &keys))
}

fn send(cx: &mut Context, cluster: &SearchCluster, reason: Reason, message: String) {
    let event = Event { pod: None, reason, message };
    cx.events.send(&event, cluster, &cx.observer.pods);
}

/// All problems as one text, the worst first.
fn text(problems: &[Problem]) -> String {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    all.join("; ")
}

const CONDITION: &str = "CertificatesValid";

/// Certificates and keys as last read.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// End of validity of each, in seconds since the epoch: `serving`, `ca`.
    pub(crate) ends: BTreeMap<&'static str, u64>,
    problems: Vec<Problem>,
    /// The error of the call that failed.
    failure: Option<String>,
}

impl Seen {
    fn note(&mut self, facts: &CertificateFacts, problems: Vec<Problem>) {
        let all = [("serving", facts.serving_validity()), ("ca", facts.trusted_validity())];
        let ends = all.into_iter().filter_map(|(name, validity)| Some((name, validity?.not_after)));
        self.ends = ends.collect();
        self.problems = problems;
    }

    /// Message of an event, if the problems have changed and there are any.
    fn news(&self, before: &Self) -> Option<String> {
        let reasons = |seen: &Self| -> Vec<(&'static str, Option<u64>)> {
            let all = seen.problems.iter();
            all.map(|problem| (problem.reason(), problem.ends_at())).collect()
        };
        let is_new = !self.problems.is_empty() && reasons(self) != reasons(before);
        is_new.then(|| text(&self.problems))
    }

    /// The report with the condition, once certificates or keys were read.
    pub(crate) fn report(&self, mut report: Report, now: Time) -> Report {
        let (status, reason, message) = match (self.problems.first(), &self.failure) {
            (Some(worst), _) => ("False", worst.reason(), text(&self.problems)),
            (None, Some(failure)) => ("Unknown", "NotRead", failure.clone()),
            (None, None) => match self.ends.values().min() {
                Some(first) => ("True", "Valid", format!("until {}", date(*first))),
                None => return report,
            },
        };
        report.conditions.retain(|condition| condition.kind != CONDITION);
        report.conditions.push(Condition {
            kind: CONDITION.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: None,
            last_transition_time: now,
        });
        report
    }
}

#[cfg(test)]
mod tests;
