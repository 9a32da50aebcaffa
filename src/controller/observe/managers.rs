//! Observes the managers: the last status of each.

mod background;
mod clock;
mod poll;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ages::Ages;
use super::generations::{Generation, Generations};
use super::snapshot::{now, unknown};
use super::sources::{SourceReader, sources_of};
use crate::credentials::ClientOfPod;
use crate::metrics::Metrics;
use crate::pods::PodFacts;
use stayput_api::{Code, Cursor, State, Status};
use stayput_http::manager_client::{ClientError, ManagerClient};
use stayput_kube_access::cluster::{Checked, Live};
use stayput_restart::{Known, Ledger, Manager, start_is_due};

use background::Background;
pub(crate) use poll::STATUS_TIMEOUT;
pub(super) use poll::{Answer, ask};
use poll::{NoAnswer, Told};

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

    /// True if these answers show an engine as stopped whose start is due. False if it was stopped in the
    /// answer before as well: a start that cannot be sent must not hide the engine for ever.
    pub(super) fn show_due_start(&self, ledger: &Ledger, answers: &[Answer]) -> bool {
        let told = answers.iter().filter_map(|answer| Some((answer.uid(), answer.manager()?)));
        let managers: BTreeMap<&str, Manager> = told.collect();
        start_is_due(ledger, |uid| {
            let was_stopped = self.of(uid).is_ok_and(|before| before.state == State::Stopped);
            managers.get(uid).filter(|_| !was_stopped).cloned()
        })
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
        exit.ended = exit.ended.map(|ended| clock::by_time_of_day(ended, told.times_ahead));
    }
    if let Some(run) = &mut manager.run {
        run.started = run.started.map(|at| clock::by_time_of_day(at, told.times_ahead));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::CredentialsError;
    use crate::pods::Reading;
    use stayput_api::Problem;
    use stayput_http::https::{self, Target, UntrustedCertificate};
    use stayput_http::manager_client::{Address, NotReachable, Refused, Unanswered, Untrusted};
    use stayput_kube_access::cluster::SearchCluster;

    fn refused(code: Code) -> ClientError {
        let problem = Box::new(Problem::new(code, "no"));
        ClientError::Refused(Refused { problem, body: hyper::body::Bytes::new(), date: None })
    }

    fn status() -> Status {
        let status = serde_json::json!({
            "manager": {
                "version": "0.1.0", "boot_id": "b", "pid": 1, "since": "2026-11-21T09:00:00Z",
                "durable": true, "pod": { "namespace": "n", "name": "a", "uid": "u" },
                "log_lines_lost": 0, "errors": [],
            },
            "cursor": "b/1", "desired": "stopped", "state": "stopped", "ready": null,
            "since": "2026-11-21T09:00:00Z", "sequence": 1, "run": null, "starts": 1,
            "last_exit": null, "last_request": null, "config": null, "reason": null,
        });
        serde_json::from_value(status).unwrap()
    }

    #[test] // proves RESTART-33
    fn who_had_no_turn_is_caught_up_with_in_the_next_look() {
        let pod = serde_json::json!({
            "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1" },
        });
        let pod = serde_json::from_value(pod).unwrap();
        let pods = [Arc::new(PodFacts::of(&pod, &Reading::default()).unwrap())];
        let cluster = serde_json::json!({
            "apiVersion": "stayput.dev/v1alpha1",
            "kind": "SearchCluster",
            "metadata": { "name": "logs" },
            "spec": {
                "pods": { "selector": { "matchLabels": { "app": "logs" } } },
                "engine": { "scheme": "http" },
                "manager": { "caSecret": "ca", "auth": { "jwtKeySecret": "key" } },
            },
        });
        let cluster: SearchCluster = serde_json::from_value(cluster).unwrap();
        let (checked, sources) = (cluster.check().unwrap(), SourceReader::default());
        let mut managers = Managers::default();
        let remember = |managers: &mut Managers, error| {
            let (facts, asked_at) = (Arc::clone(&pods[0]), Instant::now());
            let answer = Answer { facts, client: None, asked_at, result: Err(error) };
            managers.remember(vec![answer], &sources, &checked, &pods);
            managers.has_unasked()
        };
        assert!(remember(&mut managers, NoAnswer::NotAsked));
        let no_token = || NoAnswer::Credentials(Arc::new(CredentialsError::NoServiceAccount));
        assert!(!remember(&mut managers, no_token()));
        assert!(managers.client("u").is_none());

        // Without credentials nothing is asked; what is in the ledger can still be sent.
        let client = ManagerClient::new(Address::Socket("manager".into())).unwrap();
        managers.told_for_test("u", client, status());
        assert!(!remember(&mut managers, no_token()));
        assert!(managers.of("u").is_err() && managers.client("u").is_some());
        assert!(remember(&mut managers, NoAnswer::NotAsked));
        assert!(managers.client("u").is_some());
    }

    #[test]
    fn only_what_speaks_of_credentials_casts_doubt_on_them() {
        let (manager, name, refused_it) = ("m", "m", std::io::ErrorKind::ConnectionRefused);
        let not_reachable = NotReachable::new(&Target::socket(manager), refused_it.into());
        assert!(doubt(&not_reachable.into(), "u").is_none());
        let source = https::NoAnswer::Timeout(std::time::Duration::ZERO);
        assert!(doubt(&Unanswered { manager: None, source }.into(), "u").is_none());
        let source =
            UntrustedCertificate::WrongName { name: name.into(), source: refused_it.into() };
        let untrusted = Untrusted { manager: manager.into(), source };
        assert!(matches!(doubt(&untrusted.into(), "u"), Some(Doubt::Trust)));
        for code in [Code::Unauthenticated, Code::Forbidden] {
            let doubt = doubt(&refused(code), "u");
            assert!(matches!(doubt, Some(Doubt::Token(uid)) if uid == "u"));
        }
        assert!(doubt(&refused(Code::WrongPod), "u").is_none());
    }
}
