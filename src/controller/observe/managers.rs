//! Observes the managers: the last status of each, and the difference between its clock and ours.

mod poll;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stayput_api::{Code, Cursor, State, Status};
use stayput_http::jwt::LEEWAY;
use stayput_http::manager_client::{ClientError, ManagerClient};
use stayput_kube_access::cluster::{Checked, Live};
use stayput_restart::{Known, Ledger, Manager, Time};
use tokio::time::Instant;

use crate::credentials::ClientOfPod;
use crate::metrics::Metrics;
pub(crate) use crate::observe::managers::poll::STATUS_TIMEOUT;
pub(super) use crate::observe::managers::poll::{Answer, ask};
use crate::observe::managers::poll::{Background, NoAnswer, Told};
use crate::observe::snapshot::{Ages, now, unknown};
use crate::observe::sources::{Generation, Generations, SourceReader, sources_of};
use crate::pods::PodFacts;

/// Age at which a status that could not be read again counts as unknown.
const MAX_UNASKED_AGE: Duration = Duration::from_secs(120);

/// The last status of each manager, by the uid of its pod.
#[derive(Debug, Default)]
pub(crate) struct Managers {
    known: BTreeMap<String, LastStatus>,
    pub(super) background: Background,
    /// True if some managers have not answered yet, or there was no time to ask them.
    has_unasked: bool,
}

/// The last status of one manager.
#[derive(Debug)]
struct LastStatus {
    /// Time of the request.
    at: Instant,
    /// The pod at the time of the request.
    facts: Arc<PodFacts>,
    manager: Known<Manager>,
    /// Files of the pod's configs.
    configs: Generations,
    /// Client for requests to the manager.
    client: Option<ManagerClient>,
    /// Cursor to wait for the manager's next change.
    cursor: Option<Cursor>,
}

/// Credentials that may be wrong, by a manager's answer.
pub(super) enum Doubt {
    /// The token for the manager of the pod with this uid.
    Token(String),
    /// The CA, or our own certificate.
    Trust,
}

impl Managers {
    /// The pods whose managers should be asked now: first those under way, then the one that was not
    /// asked for the longest time.
    pub(super) fn due(&self, pods: &[Arc<PodFacts>], ages: &Ages<'_>) -> Vec<Arc<PodFacts>> {
        let is_due = |pod: &&Arc<PodFacts>| {
            let last = self.known.get(&pod.uid);
            let has_changed = last.is_some_and(|last| {
                last.facts.ready != pod.ready || last.facts.address != pod.address
            });
            let is_being_asked =
                self.background.is_asking(&pod.uid) && !ages.is_under_way(&pod.uid);
            !is_being_asked && (has_changed || ages.is_over(&pod.uid, last.map(|last| last.at)))
        };
        let mut due: Vec<Arc<PodFacts>> = pods.iter().filter(is_due).cloned().collect();
        due.sort_by_key(|pod| (!ages.is_under_way(&pod.uid), self.asked(&pod.uid)));
        due
    }

    /// Asks managers of nodes that are not under way. Does not wait for one that did not answer the last
    /// time.
    pub(super) fn ask_in_background(&mut self, clients: Vec<ClientOfPod>, metrics: &Arc<Metrics>) {
        let is_silent = |uid: &str| self.known.get(uid).is_some_and(|last| last.manager.is_err());
        self.background.begin(clients, metrics, is_silent);
    }

    /// Stores the answers. Returns the credentials that may be wrong.
    pub(super) fn remember(
        &mut self,
        answers: Vec<Answer>,
        sources: &SourceReader,
        checked: &Checked,
        pods: &[Arc<PodFacts>],
    ) -> Vec<Doubt> {
        let there: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        self.known.retain(|uid, _| there.contains(uid.as_str()));
        // A status is unknown if its manager has not answered for too long.
        let background = &self.background;
        self.known
            .retain(|uid, last| !background.is_asking(uid) || last.at.elapsed() < MAX_UNASKED_AGE);
        self.has_unasked = self.background.is_busy();
        let mut doubts = Vec::new();
        for Answer { facts, client, asked_at, result } in answers {
            if !there.contains(facts.uid.as_str())
                || self.asked(&facts.uid).is_some_and(|newer| newer > asked_at)
            {
                continue;
            }
            let (mut client, before) = (client, self.known.remove(&facts.uid));
            let (manager, configs, cursor) = match result {
                Ok(told) => {
                    let configs = Generations::of(&told.status);
                    let manager = compare(&told, &configs, sources, checked, &facts);
                    let before = before.and_then(|last| last.manager.ok());
                    let manager = manager.seen_after(before.as_ref(), now());
                    (Ok(manager), configs, Some(told.status.cursor))
                }
                Err(NoAnswer::NotAsked) => {
                    self.has_unasked = true;
                    if let Some(before) = before.filter(|one| one.at.elapsed() < MAX_UNASKED_AGE) {
                        self.known.insert(facts.uid.clone(), before);
                    }
                    continue;
                }
                // Nothing was sent. The last client can still send a start.
                Err(error @ NoAnswer::Credentials(_)) => {
                    let (known, cursor) =
                        before.map_or((None, None), |last| (last.client, last.cursor));
                    client = client.or(known);
                    (Err(unknown(error.to_string())), Generations::default(), cursor)
                }
                Err(NoAnswer::Failed { error, clock_ahead }) => {
                    doubts.extend(doubt(&error, &facts.uid));
                    let error = NoAnswer::Failed { error, clock_ahead }.to_string();
                    (Err(unknown(error)), Generations::default(), None)
                }
            };
            let uid = facts.uid.clone();
            let last = LastStatus { at: asked_at, facts, manager, configs, client, cursor };
            self.known.insert(uid, last);
        }
        doubts
    }

    /// Uids of the nodes under way whose engine was stopped in the manager's last answer.
    pub(super) fn stopped(&self, ledger: &Ledger) -> BTreeSet<String> {
        let uids = ledger.under_way().map(|member| member.pod_uid.clone());
        uids.filter(|uid| self.of(uid).is_ok_and(|last| last.state == State::Stopped)).collect()
    }

    /// The last status of this pod's manager.
    pub(crate) fn of(&self, uid: &str) -> Known<Manager> {
        match self.known.get(uid) {
            Some(last) => last.manager.clone(),
            None => Err(unknown("its manager has not answered yet")),
        }
    }

    /// The configs of this pod whose files are known.
    pub(super) fn configs(&self, uid: &str) -> impl Iterator<Item = &Generation> {
        self.known.get(uid).into_iter().flat_map(|last| last.configs.iter())
    }

    /// Time of the last request to the manager of this pod.
    pub(crate) fn asked(&self, uid: &str) -> Option<Instant> {
        self.known.get(uid).map(|last| last.at)
    }

    /// A client of this pod's manager.
    pub(crate) fn client(&self, uid: &str) -> Option<&ManagerClient> {
        self.known.get(uid)?.client.as_ref()
    }

    /// Sets the status of this pod's manager.
    #[cfg(test)]
    pub(crate) fn told_for_test(&mut self, uid: &str, client: ManagerClient, status: Status) {
        let pod = serde_json::json!({
            "metadata": { "name": uid, "namespace": "n", "uid": uid, "resourceVersion": "1" },
        });
        let pod = serde_json::from_value(pod).expect("a pod");
        let facts = PodFacts::of(&pod, &crate::pods::Reading::default());
        let last = LastStatus {
            at: Instant::now(),
            facts: Arc::new(facts.expect("its facts")),
            manager: Ok(Manager::from(&status)),
            configs: Generations::default(),
            client: Some(client),
            cursor: Some(status.cursor),
        };
        self.known.insert(uid.to_owned(), last);
    }

    /// Client and cursor to wait for the next change of this pod's manager.
    pub(crate) fn cursor(&self, uid: &str) -> Option<(&ManagerClient, &Cursor)> {
        let last = self.known.get(uid)?;
        last.client.as_ref().zip(last.cursor.as_ref())
    }

    /// True if some managers have not answered yet, or there was no time to ask them.
    pub(crate) fn has_unasked(&self) -> bool {
        self.has_unasked
    }
}

fn doubt(error: &ClientError, uid: &str) -> Option<Doubt> {
    match error {
        ClientError::Refused(refused) => match refused.problem.code {
            Code::Unauthenticated | Code::Forbidden => Some(Doubt::Token(uid.to_owned())),
            _ => None,
        },
        ClientError::Untrusted(_) | ClientError::Credentials(_) => Some(Doubt::Trust),
        ClientError::NotReachable(_)
        | ClientError::Unanswered(_)
        | ClientError::WrongPod(_)
        | ClientError::Protocol(_) => None,
    }
}

/// The manager's status, compared with the sources and the spec.
fn compare(
    told: &Told,
    configs: &Generations,
    read: &SourceReader,
    checked: &Checked,
    pod: &PodFacts,
) -> Manager {
    let status = &told.status;
    let mut manager = Manager::from(status);
    manager.clock_ahead = told.clock_ahead;
    if let Some(exit) = &mut manager.last_exit {
        exit.ended = exit.ended.map(|ended| by_time_of_day(ended, told.times_ahead));
    }
    if let Some(run) = &mut manager.run {
        run.started = run.started.map(|at| by_time_of_day(at, told.times_ahead));
    }
    if let (Some(mounted), Ok(sources)) = (&configs.mounted, sources_of(checked, pod)) {
        manager.live_mismatch = live_mismatch(status, sources.live());
        manager.lagging = read.lagging(sources, &pod.name, mounted);
    }
    manager
}

/// The first file that the engine reloads by itself for only one of the manager and the spec.
fn live_mismatch(status: &Status, live: &Live) -> Option<String> {
    let files = status.config.iter().flat_map(|config| &config.files);
    let file = files.into_iter().find(|file| file.live != live.covers(&file.path))?;
    let (manager, spec) =
        if file.live { ("matches", "does not") } else { ("does not match", "does") };
    Some(format!(
        "the manager's --live {manager} {}, and spec.config.live {spec}: give both the same globs",
        file.path
    ))
}

/// Minimum lead of the manager's clock over ours, in seconds; negative if it is behind, zero if the two may
/// be the same. `date` is its time, in seconds, from an answer between `asked` and `answered`.
fn ahead(date: Option<u64>, asked: Time, answered: Time) -> i64 {
    let Some(date) = date else { return 0 };
    // The date has no fractions of a second.
    let (least, most) =
        (Time(date.saturating_mul(1000)), Time(date.saturating_mul(1000)).plus(999));
    let seconds = |milliseconds: u64| i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    seconds(least.since(answered)) - seconds(asked.since(most))
}

/// A time of a status by the manager's time of day. The status is by a clock that began with that and never
/// jumps; `ahead` is its lead over the time of day, in milliseconds, once that was set.
fn by_time_of_day(told: Time, ahead: i64) -> Time {
    Time(told.0.saturating_add_signed(ahead.saturating_neg()))
}

/// Text to add to the reason of a refusal; empty if the difference is too small for tokens to be refused.
fn cause(ahead: i64) -> String {
    if ahead.unsigned_abs() < LEEWAY {
        return String::new();
    }
    let (seconds, direction) =
        (ahead.unsigned_abs(), if ahead > 0 { "ahead of" } else { "behind" });
    format!("; its clock is {seconds} s {direction} the reconciler's")
}

#[cfg(test)]
mod tests;
