//! Observes everything that one decision is made from, read together. A fact that cannot be read is unknown,
//! with the reason; nothing is guessed.

mod absent_pods;
mod content;
mod dry_runs;
mod endpoints;
pub(crate) mod engine;
mod leftovers;
mod managers;
mod owners;
mod replacement;
mod room;
mod snapshot;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::core::Selector;
use tokio::time::{Instant, timeout};

use super::apiserver::Apiserver;
use super::credentials::Credentials;
use super::metrics::Metrics;
use super::pods::{PodFacts, Pods};
use crate::run::Account;
use stayput_engine::Endpoint;
use stayput_kube_access::cluster::{Checked, SearchCluster};
use stayput_restart::{
    Engine, Known, Ledger, Pod, Snapshot, awaited_starts, needs_engine, reads_engine,
};

use crate::execute::Flushes;
use crate::observe::absent_pods::Missing;
use crate::observe::absent_pods::OrderedReady;
pub(super) use crate::observe::endpoints::wait_for_endpoints;
use crate::observe::snapshot::Ages;
use crate::observe::snapshot::Jumps;
use endpoints::Endpoints;
pub(super) use engine::not_back;
use engine::{EngineView, ViewError};
use leftovers::LookAtRest;
use managers::Doubt;
pub(super) use managers::{Managers, STATUS_TIMEOUT};
use snapshot::unknown;
pub(super) use snapshot::{now, refresh};

/// Time in one observation for dry runs of pods that are not under way, if the apiserver is slow.
const OTHERS_WINDOW: Duration = Duration::from_secs(10);

/// Time for the engine's answers while a start comes next: engines that run may hang, or elect another
/// master, and nothing that they could say changes the start.
const ENGINE_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Input of one observation.
pub(super) struct Scope<'a> {
    /// The SearchCluster, in its newest known state.
    pub(super) cluster: &'a SearchCluster,
    /// The checked spec.
    pub(super) checked: &'a Checked,
    /// The other SearchClusters of its namespace: name and selector.
    pub(super) others: &'a [(String, Selector)],
    /// Uids of pods whose facts must be read now, however fresh the cache is.
    pub(super) must_read: &'a BTreeSet<String>,
    /// True to ask the engine even if no decision depends on it.
    pub(super) with_engine: bool,
}

/// Reads the facts about one SearchCluster, and caches the answers.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) api: Apiserver,
    pub(super) pods: Pods,
    pub(super) managers: Managers,
    pub(super) engine: EngineView,
    pub(super) flushes: Flushes,
    data_paths: engine::DataPaths,
    pub(super) jumps: Jumps,
    look_at_rest: LookAtRest,
    pub(super) endpoints: Endpoints,
    credentials: Credentials,
    sources: sources::SourceReader,
    content: content::ContentReader,
    pub(super) owners: owners::Owners,
    pub(super) missing: Missing,
    rooms: room::Rooms,
    claims: replacement::Claims,
    patch_dry_runs: dry_runs::PatchDryRuns,
    undo_dry_runs: dry_runs::UndoDryRuns,
    /// Progress of each node that has begun to leave, by its name.
    pub(super) leaving: BTreeMap<String, String>,
    metrics: Arc<Metrics>,
}

impl Observer {
    pub(super) fn new(
        api: Apiserver,
        metrics: Arc<Metrics>,
        account: Option<Account>,
        namespace: &str,
        name: &str,
    ) -> Self {
        Self {
            pods: Pods::default(),
            managers: Managers::default(),
            engine: EngineView::default(),
            flushes: Flushes::default(),
            data_paths: engine::DataPaths::default(),
            jumps: Jumps::default(),
            look_at_rest: LookAtRest::default(),
            endpoints: Endpoints::default(),
            credentials: Credentials::new(api.clone(), account, namespace, name),
            sources: sources::SourceReader::default(),
            content: content::ContentReader::default(),
            owners: owners::Owners::default(),
            missing: Missing::default(),
            rooms: room::Rooms::default(),
            claims: replacement::Claims::default(),
            patch_dry_runs: dry_runs::PatchDryRuns::default(),
            undo_dry_runs: dry_runs::UndoDryRuns::default(),
            leaving: BTreeMap::new(),
            api,
            metrics,
        }
    }

    /// An observer that reaches no apiserver and no engine.
    #[cfg(test)]
    pub(super) fn of_nothing_for_test() -> Self {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let client = kube::Client::try_from(nowhere).expect("a client");
        let metrics = Arc::new(Metrics::new());
        let api = Apiserver::new(client, Arc::clone(&metrics));
        Self::new(api, metrics, None, "search", "logs")
    }

    /// True if anything is under way or asked for, by the objects that the watches have shown.
    pub(super) fn is_active(&self, cluster: &SearchCluster) -> bool {
        needs_engine(&snapshot::bare(cluster, &self.pods, String::new()))
    }

    /// Reads everything that a decision may depend on: apiserver (Secrets, sources, owners), managers and
    /// engine, at the same time. `fresh_id` is the id for a request made from the snapshot.
    pub(super) async fn observe(&mut self, scope: &Scope<'_>, fresh_id: String) -> Snapshot {
        let Scope { cluster, checked, .. } = scope;
        let mut snapshot = snapshot::bare(cluster, &self.pods, fresh_id);
        let is_active = scope.with_engine || needs_engine(&snapshot);
        let pods: Vec<Arc<PodFacts>> = self.pods.iter().cloned().collect();
        let ages = Ages::of(&snapshot, scope.must_read, is_active, pods.len());

        let due = self.managers.due(&pods, &ages);
        let spec = &cluster.spec;
        let clients = self.credentials.managers(&spec.manager, &checked.auth, &due).await;
        let (awaited, others): (Vec<_>, Vec<_>) =
            clients.into_iter().partition(|(facts, _)| ages.is_under_way(&facts.uid));
        self.managers.ask_in_background(others, &self.metrics);
        let asks_engine = is_active || reads_engine(&snapshot);
        let reach =
            if asks_engine { Some(self.credentials.engine(&spec.engine).await) } else { None };
        let endpoints = engine::endpoints(&pods, &ages, spec.engine.port);
        self.engine.expect_pods(pods.len());
        let (api, metrics) = (&self.api, &self.metrics);
        let sets = self.missing.sets();
        let start_comes_next = self.start_comes_next(&snapshot.ledger);
        let (mut answers, mut awaited, mut start_is_due) = (Vec::new(), awaited, false);
        if start_comes_next {
            answers = managers::ask(std::mem::take(&mut awaited), metrics).await;
            start_is_due = self.managers.show_due_start(&snapshot.ledger, &answers);
        }
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let (asked, answered, engine, (), (), ()) = tokio::join!(
            managers::ask(awaited, metrics),
            self.managers.background.answers(),
            async {
                let reach = reach?;
                if start_is_due {
                    return Some(Err(ViewError::StartFirst));
                }
                let zone = &checked.policy.zone_attribute;
                let (endpoints, ledger) = (endpoints.clone(), Some(&snapshot.ledger));
                let engine = self.engine.observe(reach, endpoints, zone, ledger, metrics);
                Some(if start_comes_next {
                    let first = Err(ViewError::StartFirst);
                    timeout(ENGINE_ANSWER_WAIT, engine).await.unwrap_or(first)
                } else {
                    engine.await
                })
            },
            self.sources.read(api, &cluster.metadata, checked, &pods, &ages),
            self.content.read(api, namespace, &pods, &ages),
            self.owners.read(api, namespace, &pods, &ages, &sets),
        );
        answers.extend(asked);
        answers.extend(answered);
        let doubts = self.managers.remember(answers, &self.sources, checked, &pods);
        for doubt in doubts {
            match doubt {
                Doubt::Token(uid) => self.credentials.reread_token(&uid, &checked.auth),
                Doubt::Trust => self.credentials.reread_trust(&spec.manager, &checked.auth),
            }
        }
        let mut no_master = false;
        let engine = match engine {
            None => Err(unknown("not asked: no decision depends on it")),
            Some(engine) => {
                no_master = engine.as_ref().is_err_and(ViewError::is_without_master);
                self.known_engine(cluster, engine)
            }
        };
        self.data_paths.remember(&pods, self.engine.nodes());
        let replaced = self.owners.replaced_by_operators(&pods);
        let mut seen: Vec<Pod> = pods
            .iter()
            .map(|facts| {
                let mut pod = snapshot::pod(facts);
                pod.container = facts.container_with(spec.manager.port).map(str::to_owned);
                pod.program = facts.manager_program(spec.manager.port).map(str::to_owned);
                pod.deadly_probe = facts.deadly_probe(spec.engine.port);
                pod.outdated = self.owners.outdated(facts);
                if let (Some(operator), Some(owner)) = (&mut pod.operator, &facts.owner) {
                    operator.replaces_pods = replaced.contains(&owner.name);
                }
                pod.leaving = self.how_far(&facts.node, &snapshot.ledger);
                let data_paths = self.data_paths.of(&facts.uid);
                let of_template = self.owners.update(facts, spec.manager.port, data_paths);
                let container = facts.engine_container(spec.manager.port);
                pod.update = self.content.added_to(of_template, facts, container, &checked.policy);
                pod.not_started = facts.not_started(spec.manager.port);
                pod.replace_unstarted(&checked.policy);
                self.patch_dry_runs.replace_refused(&checked.policy, facts, &mut pod);
                pod.live = snapshot::live(facts, spec.manager.port, data_paths);
                pod.sources = self.sources.of(checked, facts);
                pod.config_from = sources::objects_of(checked, facts);
                pod.manager = self.managers.of(&facts.uid);
                pod.ignores_change = pod.change().is_some_and(|(runs_on, wanted)| {
                    let known = self.managers.configs(&facts.uid);
                    let alike = self.sources.alike(checked, facts, known);
                    snapshot.ledger.ignored_changes.covers(runs_on, wanted, &alike)
                });
                pod
            })
            .collect();
        // Only now it is known which pods are to be replaced or changed.
        let both: Vec<_> = pods.iter().zip(&seen).collect();
        let end = Instant::now() + self.window_for_others(&snapshot.ledger);
        tokio::join!(
            Box::pin(self.rooms.read(&self.api, &checked.policy, &both, &self.owners, &ages, end)),
            Box::pin(self.claims.read(&self.api, &snapshot.ledger, &pods)),
            Box::pin(self.patch_dry_runs.read(&self.api, &checked.policy, &both, &ages, end)),
            Box::pin(self.undo_dry_runs.read(&self.api, &snapshot.ledger, &both)),
        );
        if self.patch_dry_runs.shows_no_resize() {
            self.owners.forget_abilities();
        }
        let ordered_ready =
            OrderedReady::of(&self.owners, &pods, &seen, &snapshot.ledger, snapshot::now());
        for (pod, facts) in seen.iter_mut().zip(&pods) {
            pod.undeletable = self.rooms.undeletable(&pod.uid);
            self.patch_dry_runs.write_into(pod);
            pod.unreturnable = self.undo_dry_runs.of(&pod.uid);
            pod.room = match self.rooms.why_not(pod) {
                Ok(None) => Ok(ordered_ready.why_not(facts, pod)),
                known => known,
            };
            let uids = self.rooms.claim_uids(&pod.uid);
            pod.claim_uids = uids.map_or_else(|| self.claims.of(&pod.uid), Ok);
        }
        snapshot.engine = engine;
        snapshot.no_master = no_master;
        snapshot.cluster.overlaps = snapshot::overlaps(&pods, scope.others);
        snapshot.pods = seen;
        if snapshot.pods.is_empty() {
            let there = absent_pods::read(&self.api, namespace, &snapshot.ledger).await;
            snapshot.cluster.unselected = there;
        }
        snapshot.missing = self.missing.look(&self.owners, &pods, &checked.pods, Instant::now());
        let both = snapshot.pods.iter().zip(pods.iter().map(AsRef::as_ref));
        snapshot.configs = self.sources.configs(checked, both);
        let mut both = pods.iter().zip(&snapshot.pods);
        let is_outside =
            both.any(|(facts, pod)| self.look_at_rest.shows_outside(facts, pod, snapshot.now));
        if !asks_engine && (is_outside || reads_engine(&snapshot)) {
            // Only the managers have shown that a node runs outside of the cluster, or only the
            // sources that the engine's version decides.
            let reach = self.credentials.engine(&spec.engine).await;
            let zone = &checked.policy.zone_attribute;
            let engine = self.engine.observe(reach, endpoints, zone, None, &self.metrics).await;
            snapshot.engine = self.known_engine(cluster, engine);
        }
        // After the managers: a drain that they report has begun.
        self.endpoints.read(&self.api, namespace, &checked.policy, &mut snapshot.pods).await;
        snapshot.flushed = self.flushes.nodes().clone();
        snapshot.now = snapshot::now();
        snapshot.jumped = self.jumps.look(snapshot.now, Instant::now());
        snapshot
    }

    /// Time for dry runs of pods that are not under way: zero while a start comes next, which must not wait
    /// for a slow webhook.
    fn window_for_others(&self, ledger: &Ledger) -> Duration {
        if self.start_comes_next(ledger) { Duration::ZERO } else { OTHERS_WINDOW }
    }

    /// True if a start of the ledger comes next, by the managers' last answers: what is slow is not waited for.
    fn start_comes_next(&self, ledger: &Ledger) -> bool {
        awaited_starts(ledger, |uid| self.managers.of(uid).ok()).next().is_some()
    }

    /// Reads the engine once more if the last answer is too old for a stop.
    pub(super) async fn read_engine_again(
        &mut self,
        cluster: &SearchCluster,
        checked: &Checked,
    ) -> Option<Known<Engine>> {
        if !self.engine.is_old() {
            return None;
        }
        // A read before a stop always waits for the health.
        let zone = &checked.policy.zone_attribute;
        let engine = self.engine.read(zone, None, &self.metrics).await;
        Some(self.known_engine(cluster, engine))
    }

    /// The observed engine, or the reason why it is unknown. Rereads our credentials if they are the reason.
    fn known_engine(
        &mut self,
        cluster: &SearchCluster,
        engine: Result<Engine, ViewError>,
    ) -> Known<Engine> {
        engine.map_err(|error| {
            if error.is_about_credentials() {
                self.credentials.reread_engine(&cluster.spec.engine);
            }
            if error.may_be_of_scheme() {
                self.credentials.try_other_scheme(&cluster.spec.engine);
            }
            unknown(error.to_string())
        })
    }

    /// Addresses for questions about the nodes of a declared cluster's engine, by the objects that the
    /// watches have shown.
    fn endpoints_of(&self, cluster: &SearchCluster, known: &Snapshot) -> Vec<Endpoint> {
        let pods: Vec<Arc<PodFacts>> = self.pods.iter().cloned().collect();
        let must_read = BTreeSet::new();
        let ages = Ages::of(known, &must_read, false, pods.len());
        engine::endpoints(&pods, &ages, cluster.spec.engine.port)
    }

    /// Progress of a node that has begun to leave.
    fn how_far(&self, node: &str, ledger: &Ledger) -> Option<String> {
        let unknown = || "its progress is not known yet".to_owned();
        let has_begun = ledger.debts.leaving.nodes.contains(node);
        has_begun.then(|| self.leaving.get(node).cloned().unwrap_or_else(unknown))
    }

    /// Discards config and templates: they were changed just now, and the next observation reads them.
    pub(super) fn reread_what_is_made(&mut self) {
        self.sources.forget();
        self.owners.forget_all();
    }

    /// Discards the state that belongs to another spec.
    pub(super) fn reset(&mut self) {
        self.pods = Pods::default();
        self.managers = Managers::default();
        self.engine = EngineView::default();
        self.look_at_rest = LookAtRest::default();
        self.data_paths = engine::DataPaths::default();
        self.credentials.forget_secrets();
    }
}
