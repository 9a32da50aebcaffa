//! Looking: everything one decision is made from, read together. What cannot be read is unknown,
//! with the reason; nothing is guessed.

mod engine;
mod managers;
mod owners;
mod snapshot;
mod sources;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Selector;
use tokio::time::Instant;

use super::apiserver::Apiserver;
use super::credentials::Credentials;
use super::metrics::Metrics;
use super::pods::{Facts, Pods};
use super::settings::Account;
use crate::cluster::{Checked, SearchCluster};
use stayput_restart::{Snapshot, Unknown, needs_engine};

pub(super) use engine::{EngineView, health};
use managers::Doubt;
pub(super) use managers::Managers;
pub(super) use snapshot::{now, refresh};

/// Up to so many managers, or objects with config, are asked anew at every look while something is
/// going on.
const FEW: usize = 16;
/// More of them are asked again after this long, unless they are under way.
const AGE_ALERT: Duration = Duration::from_secs(10);
/// While nothing is going on.
const AGE_AT_REST: Duration = Duration::from_secs(60);

/// What is looked at.
pub(super) struct Scene<'a> {
    /// The SearchCluster, read live if something is going on.
    pub(super) cluster: &'a SearchCluster,
    /// Its spec.
    pub(super) checked: &'a Checked,
    /// The other SearchClusters of its namespace: name and selector.
    pub(super) others: &'a [(String, Selector)],
    /// Pods of which everything has to be read now, whatever was read a moment ago.
    pub(super) insist: &'a BTreeSet<String>,
    /// The engine is asked as well, though nothing depends on it.
    pub(super) whole: bool,
}

/// Who looks at one SearchCluster, and what was seen.
#[derive(Debug)]
pub(super) struct Eyes {
    pub(super) api: Apiserver,
    pub(super) pods: Pods,
    pub(super) managers: Managers,
    pub(super) engine: EngineView,
    /// Names of nodes whose cluster was flushed for their stop.
    pub(super) flushed: BTreeSet<String>,
    credentials: Credentials,
    sources: sources::SourceReader,
    owners: owners::Owners,
    metrics: Arc<Metrics>,
}

impl Eyes {
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
            flushed: BTreeSet::new(),
            credentials: Credentials::new(api.clone(), account, namespace, name),
            sources: sources::SourceReader::default(),
            owners: owners::Owners::default(),
            api,
            metrics,
        }
    }

    /// Whether something is going on, as far as can be told without asking anybody.
    pub(super) fn is_alert(&self, cluster: &SearchCluster) -> bool {
        needs_engine(&snapshot::bare(cluster, &self.pods, String::new()))
    }

    /// One look at everything.
    pub(super) async fn look(&mut self, scene: &Scene<'_>, fresh_id: String) -> Snapshot {
        let Scene { cluster, checked, .. } = scene;
        let mut snapshot = snapshot::bare(cluster, &self.pods, fresh_id);
        let alert = scene.whole || needs_engine(&snapshot);
        let pods: Vec<Arc<Facts>> = self.pods.iter().cloned().collect();
        let ages = Ages::of(&snapshot, scene.insist, alert, pods.len());

        let due = self.managers.due(&pods, &ages);
        let spec = &cluster.spec;
        let clients = self.credentials.managers(&spec.manager, &checked.auth, &due).await;
        let access = match alert {
            true => Some(self.credentials.engine(&spec.engine).await),
            false => None,
        };
        let endpoints = engine::endpoints(&pods, &ages, spec.engine.port);
        let (api, metrics) = (&self.api, &self.metrics);
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let (answers, engine, (), ()) = tokio::join!(
            managers::ask(clients, metrics),
            async {
                let access = access?;
                let zone = &checked.policy.zone_attribute;
                Some(self.engine.look(access, endpoints, zone, metrics).await)
            },
            self.sources.read(api, namespace, &checked.sources, &pods, &ages),
            self.owners.read(api, namespace, &pods, &ages),
        );
        let doubts = self.managers.take(answers, &self.sources, checked, &pods);
        for doubt in doubts {
            match doubt {
                Doubt::Token(uid) => self.credentials.doubt_token(&uid, &checked.auth),
                Doubt::Trust => self.credentials.doubt_trust(&spec.manager, &checked.auth),
            }
        }
        snapshot.engine = match engine {
            None => Err(unknown("not asked: nothing depends on it")),
            Some(Ok(engine)) => Ok(engine),
            Some(Err(engine::Blind { message, is_shunned })) => {
                if is_shunned {
                    self.credentials.doubt_engine(&spec.engine);
                }
                Err(unknown(message))
            }
        };
        snapshot.cluster.overlaps = snapshot::overlaps(&pods, scene.others);
        snapshot.pods = pods
            .iter()
            .map(|facts| {
                let mut pod = snapshot::pod(facts);
                pod.deadly_probe = facts.deadly_probe(spec.engine.port);
                pod.outdated = self.owners.outdated(facts);
                pod.sources = self.sources.of(&checked.sources, &facts.name);
                pod.manager = self.managers.of(&facts.uid);
                pod
            })
            .collect();
        snapshot.flushed = self.flushed.clone();
        snapshot.now = snapshot::now();
        snapshot
    }

    /// Forgets what belongs to a spec that was changed.
    pub(super) fn blink(&mut self) {
        self.pods = Pods::default();
        self.managers = Managers::default();
        self.engine = EngineView::default();
        self.credentials.forget_secrets();
    }
}

/// How old what is known of each pod may be.
pub(super) struct Ages<'a> {
    close: BTreeSet<&'a str>,
    usual: Duration,
}

impl<'a> Ages<'a> {
    fn of(snapshot: &'a Snapshot, insist: &'a BTreeSet<String>, alert: bool, pods: usize) -> Self {
        let close = snapshot.ledger.busy_pods().chain(insist.iter().map(String::as_str)).collect();
        let usual = match (alert, pods) {
            (true, ..=FEW) => Duration::ZERO,
            (true, _) => AGE_ALERT,
            (false, _) => AGE_AT_REST,
        };
        Self { close, usual }
    }

    /// Whether what was read at `read` is too old for this pod.
    fn is_over(&self, uid: &str, read: Option<Instant>) -> bool {
        match read {
            None => true,
            Some(_) if self.close.contains(uid) => true,
            Some(read) => read.elapsed() >= self.usual,
        }
    }

    /// Whether this pod's node is on its way, or about to be.
    fn is_close(&self, uid: &str) -> bool {
        self.close.contains(uid)
    }
}

fn unknown(message: impl Into<String>) -> Unknown {
    Unknown { message: message.into() }
}
