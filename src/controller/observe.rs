//! Observes everything that one decision is made from, in two stages: facts ([`Facts`]), which are read at
//! the same time, and then questions that depend on facts ([`Questions`]), such as dry runs. A reader keeps
//! its answers until they are due again, and then each fills its part of the snapshot, in that order. A fact
//! that cannot be read is unknown, with the reason; nothing is guessed.

mod absent_pods;
mod content;
mod dry_runs;
mod endpoints;
pub(crate) mod engine;
mod leftovers;
mod managers;
pub(crate) mod operator_objects;
mod owners;
mod replacement;
mod room;
mod snapshot;
mod sources;
mod stages;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Selector;
use tokio::time::Instant;

use stayput_engine::Endpoint;
use stayput_kube_access::cluster::{self, Checked, SearchCluster, SearchClusterSpec};
use stayput_restart::{
    Engine, Known, Ledger, Policy, Snapshot, leave_plan, needs_engine, reads_engine,
};

use crate::apiserver::Apiserver;
use crate::credentials::{ClientOfPod, Credentials};
use crate::declared::ShrinkingSets;
use crate::effective_spec::EffectiveSpec;
use crate::execute::Flushes;
use crate::metrics::Metrics;
use crate::pods::{PodFacts, Pods};
use crate::run::Account;

pub(super) use endpoints::wait_for_endpoints;
pub(super) use engine::not_back;
use engine::{DataPaths, EngineView, ViewError};
use leftovers::LookAtRest;
use managers::Doubt;
pub(super) use managers::{Managers, STATUS_TIMEOUT};
use operator_objects::OperatorObjects;
use snapshot::{Ages, Jumps, unknown};
pub(super) use snapshot::{now, refresh};
use stages::{Facts, Look, LookClients, Questions};

/// Time in one observation for dry runs of pods that are not under way, if the apiserver is slow.
const OTHERS_WINDOW: Duration = Duration::from_secs(10);

/// Input of one observation.
pub(super) struct Scope<'a> {
    /// The SearchCluster, in its newest known state.
    pub(super) cluster: &'a SearchCluster,
    /// The spec that is reconciled.
    pub(super) spec: &'a SearchClusterSpec,
    /// The checked form of that spec.
    pub(super) checked: &'a Checked,
    /// The other SearchClusters of its namespace: name and selector.
    pub(super) others: &'a [(String, Selector)],
    /// Uids of pods whose facts must be read now, however fresh the cache is.
    pub(super) must_read: &'a BTreeSet<String>,
    /// True to ask the engine even if no decision depends on it.
    pub(super) with_engine: bool,
}

/// Reads everything about one SearchCluster, and caches the answers.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) api: Apiserver,
    credentials: Credentials,
    metrics: Arc<Metrics>,
    pub(super) pods: Pods,
    pub(super) facts: Facts,
    pub(super) questions: Questions,
    look_at_rest: LookAtRest,
    pub(super) jumps: Jumps,
    pub(super) flushes: Flushes,
    /// The node sets of a declared cluster from which nodes leave.
    pub(super) shrinking_sets: Option<ShrinkingSets>,
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
            credentials: Credentials::new(api.clone(), account, namespace, name),
            api,
            metrics,
            pods: Pods::default(),
            facts: Facts::default(),
            questions: Questions::default(),
            look_at_rest: LookAtRest::default(),
            jumps: Jumps::default(),
            flushes: Flushes::default(),
            shrinking_sets: None,
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
    pub(super) fn is_active(&self, cluster: &SearchCluster, spec: &SearchClusterSpec) -> bool {
        needs_engine(&self.bare(cluster, spec, String::new()))
    }

    /// A snapshot of what is known without questions to an outside system.
    fn bare(
        &self,
        cluster: &SearchCluster,
        spec: &SearchClusterSpec,
        fresh_id: String,
    ) -> Snapshot {
        let node_sets = self.shrinking_sets.as_ref().map(|sets| sets.node_sets.clone());
        Snapshot { node_sets, ..snapshot::bare(cluster, spec, &self.pods, fresh_id) }
    }

    /// Reads everything that a decision may depend on. `fresh_id` is the id for a request made from the
    /// snapshot.
    pub(super) async fn observe(&mut self, scope: &Scope<'_>, fresh_id: String) -> Snapshot {
        let Scope { cluster, spec, checked, .. } = scope;
        let bare = self.bare(cluster, spec, fresh_id);
        let pods: Vec<Arc<PodFacts>> = self.pods.iter().cloned().collect();
        let look = self.look_of(scope, &bare, &pods);
        let asks_engine = look.asks_engine;

        self.facts.engine.nodes_leave = bare.node_sets.is_some();

        // Apiserver: our credentials. Managers, engine, apiserver: the facts.
        let clients = self.clients(&look).await;
        let (answers, engine) =
            Box::pin(self.facts.read(&look, clients, &self.api, &self.metrics)).await;
        let doubts = self.facts.managers.remember(answers, &self.facts.sources, checked, &pods);
        self.reread(&doubts, scope);
        self.facts.data_paths.remember(&pods, self.facts.engine.nodes());
        let no_master = engine
            .as_ref()
            .is_some_and(|engine| engine.as_ref().is_err_and(ViewError::is_without_master));
        let engine = match engine {
            None => Err(unknown("not asked: no decision depends on it")),
            Some(engine) => self.known_engine(&spec.engine, engine),
        };

        // Apiserver: the questions that depend on these facts.
        let mut seen = self.facts.fill(&look, &mut self.questions.patch_dry_runs);
        let window =
            if self.facts.start_comes_next(look.ledger) { Duration::ZERO } else { OTHERS_WINDOW };
        Box::pin(self.questions.read(&look, &seen, &self.facts, &self.api, window)).await;
        if self.questions.patch_dry_runs.shows_no_resize() {
            self.facts.owners.forget_abilities();
        }
        self.questions.fill(&look, &self.facts, &mut seen);
        for (pod, facts) in seen.iter_mut().zip(&pods) {
            let has_begun = look.ledger.debts.leaving.nodes.contains(&facts.node);
            pod.leaving = has_begun.then(|| "its progress is not known yet".to_owned());
        }

        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let mut snapshot = Snapshot { engine, no_master, pods: seen, ..bare };
        snapshot.cluster.overlaps = snapshot::overlaps(&pods, scope.others);
        snapshot.cluster.operator_objects = self.facts.operator_objects.objects();
        if snapshot.pods.is_empty() {
            let there = absent_pods::read(&self.api, namespace, &snapshot.ledger).await;
            snapshot.cluster.unselected = there;
        }
        let Facts { missing, owners, sources, .. } = &mut self.facts;
        snapshot.missing = missing.look(owners, &pods, &checked.pods, Instant::now());
        let both = snapshot.pods.iter().zip(pods.iter().map(AsRef::as_ref));
        snapshot.configs = sources.configs(checked, both);
        let mut both = pods.iter().zip(&snapshot.pods);
        let is_outside =
            both.any(|(facts, pod)| self.look_at_rest.shows_outside(facts, pod, snapshot.now));
        if !asks_engine && (is_outside || reads_engine(&snapshot)) {
            // Only the managers have shown that a node runs outside of the cluster, or only the
            // sources that the engine's version decides.
            let ages = Ages::of(&snapshot.ledger, scope.must_read, false, pods.len());
            let endpoints = engine::endpoints(&pods, &ages, spec.engine.port);
            snapshot.engine = self.read_engine(spec, checked, endpoints).await;
        }
        // After the managers: a drain that they report has begun.
        let policy = &checked.policy;
        self.questions.endpoints.read(&self.api, namespace, policy, &mut snapshot.pods).await;
        self.read_leaving(&mut snapshot).await;
        snapshot.flushed = self.flushes.nodes().clone();
        snapshot.now = snapshot::now();
        snapshot.jumped = self.jumps.look(snapshot.now, Instant::now());
        tell_leaving(&mut snapshot, policy);
        snapshot
    }

    /// Reads the shards of the nodes that leave.
    async fn read_leaving(&self, snapshot: &mut Snapshot) {
        let Some(node_sets) = &mut snapshot.node_sets else { return };
        if snapshot.engine.is_ok() {
            let nodes = node_sets.concerned(&snapshot.ledger.debts.leaving);
            // Engine: why shards stay.
            node_sets.shards = self.facts.engine.leaving_shards(&nodes, &self.metrics).await;
        }
    }

    fn look_of<'a>(
        &self,
        scope: &'a Scope<'a>,
        bare: &'a Snapshot,
        pods: &'a [Arc<PodFacts>],
    ) -> Look<'a> {
        let is_active = scope.with_engine || needs_engine(bare);
        Look {
            scope,
            namespace: scope.cluster.metadata.namespace.as_deref().unwrap_or_default(),
            ledger: &bare.ledger,
            pods,
            ages: Ages::of(&bare.ledger, scope.must_read, is_active, pods.len()),
            asks_engine: is_active || reads_engine(bare),
        }
    }

    /// The clients of one look. Managers of nodes that are not under way are asked from now on.
    async fn clients(&mut self, look: &Look<'_>) -> LookClients {
        let spec = look.scope.spec;
        let due = self.facts.managers.due(look.pods, &look.ages);
        let auth = &look.scope.checked.auth;
        let managers = self.credentials.managers(&spec.manager, auth, &due).await;
        let is_awaited = |(facts, _): &ClientOfPod| look.ages.is_under_way(&facts.uid);
        let (awaited, others) = managers.into_iter().partition(is_awaited);
        self.facts.managers.ask_in_background(others, &self.metrics);
        let engine =
            if look.asks_engine { Some(self.credentials.engine(&spec.engine).await) } else { None };
        LookClients { awaited, engine }
    }

    /// Reads credentials again that may be wrong.
    fn reread(&mut self, doubts: &[Doubt], scope: &Scope<'_>) {
        let (auth, manager) = (&scope.checked.auth, &scope.spec.manager);
        for doubt in doubts {
            match doubt {
                Doubt::Token(uid) => self.credentials.reread_token(uid, auth),
                Doubt::Trust => self.credentials.reread_trust(manager, auth),
            }
        }
    }

    /// Reads the engine after the other facts.
    async fn read_engine(
        &mut self,
        spec: &SearchClusterSpec,
        checked: &Checked,
        endpoints: Vec<Endpoint>,
    ) -> Known<Engine> {
        let reach = self.credentials.engine(&spec.engine).await;
        let zone = &checked.policy.zone_attribute;
        let engine = self.facts.engine.observe(reach, endpoints, zone, None, &self.metrics).await;
        self.known_engine(&spec.engine, engine)
    }

    /// Reads the engine once more if the last answer is too old for a stop.
    pub(super) async fn read_engine_again(
        &mut self,
        spec: &EffectiveSpec,
    ) -> Option<Known<Engine>> {
        if !self.facts.engine.is_old() {
            return None;
        }
        // A read before a stop always waits for the health.
        let zone = &spec.checked.policy.zone_attribute;
        let engine = self.facts.engine.read(zone, None, &self.metrics).await;
        Some(self.known_engine(&spec.spec.engine, engine))
    }

    /// The observed engine, or the reason why it is unknown. Rereads our credentials if they are the reason.
    fn known_engine(
        &mut self,
        spec: &cluster::Engine,
        engine: Result<Engine, ViewError>,
    ) -> Known<Engine> {
        engine.map_err(|error| {
            if error.is_about_credentials() {
                self.credentials.reread_engine(spec);
            }
            if error.may_be_of_scheme() {
                self.credentials.try_other_scheme(spec);
            }
            unknown(error.to_string())
        })
    }

    /// Addresses for questions about the nodes of a declared cluster's engine, by the objects that the
    /// watches have shown.
    fn endpoints_of(&self, ledger: &Ledger, spec: &SearchClusterSpec) -> Vec<Endpoint> {
        let pods: Vec<Arc<PodFacts>> = self.pods.iter().cloned().collect();
        let must_read = BTreeSet::new();
        let ages = Ages::of(ledger, &must_read, false, pods.len());
        engine::endpoints(&pods, &ages, spec.engine.port)
    }

    /// Discards config and templates: they were changed just now, and the next observation reads them.
    pub(super) fn reread_what_is_made(&mut self) {
        self.facts.sources.forget();
        self.facts.owners.forget_all();
    }

    /// Discards the state that belongs to another spec.
    pub(super) fn reset(&mut self) {
        self.pods = Pods::default();
        self.facts.managers = Managers::default();
        self.facts.engine = EngineView::default();
        self.facts.data_paths = DataPaths::default();
        self.facts.operator_objects = OperatorObjects::default();
        self.look_at_rest = LookAtRest::default();
        self.credentials.forget_secrets();
    }
}

/// Says of each pod whose node leaves how far that is.
fn tell_leaving(snapshot: &mut Snapshot, policy: &Policy) {
    let mut known = leave_plan(snapshot, policy).nodes;
    for pod in &mut snapshot.pods {
        if let (Some(leaving), Some(known)) = (&mut pod.leaving, known.remove(&pod.node)) {
            *leaving = known;
        }
    }
}
