//! The clients and the state of the task of one SearchCluster.

use std::sync::Arc;

use super::apiserver::Apiserver;
use super::certificates::Certificates;
use super::clusters::{Key, LiveCluster};
use super::decision_log::DecisionLog;
use super::declared::Declared;
use super::definition::Definition;
use super::effective_spec::EffectiveSpec;
use super::event_recorder::EventRecorder;
use super::lease::Lease;
use super::metrics::Metrics;
use super::observe::Observer;
use super::pod_watch::PodWatch;
use super::requeue::Requeue;
use super::status::StatusWriter;
use super::wait::Processes;
use crate::decision_log::StartTimes;
use crate::http_server::Health;
use crate::reconcile::NewPhases;
use crate::run::Settings;
use crate::workers::Progress;

/// Clients and settings that the tasks of all SearchClusters share.
pub(super) struct Shared {
    pub(super) api: Apiserver,
    pub(super) lease: Lease,
    pub(super) metrics: Arc<Metrics>,
    pub(super) settings: Arc<Settings>,
    pub(super) health: Arc<Health>,
    pub(super) definition: Definition,
}

/// Clients of one SearchCluster's task, beside those that have a state of their own.
pub(super) struct Clients {
    pub(super) api: Apiserver,
    pub(super) lease: Lease,
    pub(super) metrics: Arc<Metrics>,
    /// Health of the installed CRD: the apiserver drops fields that an old one lacks.
    pub(super) definition: Definition,
}

/// State of one SearchCluster's task from one reconcile to the next. Nothing that a decision needs is kept here
/// only: a new process reads it again.
pub(super) struct Memory {
    pub(super) progress: Progress,
    pub(super) requeue: Requeue,
    /// The list of nodes that a node has joined, from the engine's last answer.
    pub(super) joined: Option<Processes>,
    pub(super) new_phases: NewPhases,
    pub(super) start_times: StartTimes,
    pub(super) decision_log: DecisionLog,
    /// The last valid spec, for the case that the next one is invalid.
    pub(super) last_valid: Option<EffectiveSpec>,
    /// Progress of making the objects of a declared cluster.
    pub(super) declared: Declared,
    /// The managers' certificates and keys, as last read.
    pub(super) certificates: Certificates,
}

/// One SearchCluster's task: how it reaches the outside systems, and what it remembers.
pub(super) struct Context {
    /// `namespace/name`.
    pub(super) name: String,
    pub(super) clients: Clients,
    /// The SearchCluster itself.
    pub(super) cluster: LiveCluster,
    pub(super) pod_watch: PodWatch,
    /// Reads pods, managers, engine, sources and owners, and caches the answers.
    pub(super) observer: Observer,
    pub(super) status: StatusWriter,
    pub(super) events: EventRecorder,
    pub(super) memory: Memory,
}

impl Context {
    pub(super) fn new(key: &Key, cluster: LiveCluster, shared: &Shared) -> Self {
        let Shared { api, lease, metrics, settings, definition, .. } = shared;
        let (namespace, name) = key;
        let (api, account) = (api.clone(), settings.account.clone());
        Self {
            name: format!("{namespace}/{name}"),
            cluster,
            pod_watch: PodWatch::new(api.clone(), namespace),
            observer: Observer::new(api.clone(), Arc::clone(metrics), account, namespace, name),
            status: StatusWriter::new(api.clone()),
            events: EventRecorder::new(api.clone(), &settings.name),
            clients: Clients {
                api,
                lease: lease.clone(),
                metrics: Arc::clone(metrics),
                definition: definition.clone(),
            },
            memory: Memory {
                progress: Progress::default(),
                requeue: Requeue::default(),
                joined: None,
                new_phases: NewPhases::default(),
                start_times: StartTimes::default(),
                decision_log: DecisionLog::default(),
                last_valid: None,
                declared: Declared::new(settings.account.as_ref()),
                certificates: Certificates::default(),
            },
        }
    }

    /// Reads the SearchCluster, because the cached state is old. If that fails, the watch brings it later.
    pub(super) async fn refresh_cluster(&mut self) {
        let (namespace, name) = (self.cluster.namespace(), self.cluster.name());
        if let Ok(live) = self.clients.api.objects(namespace).get(name).await {
            self.cluster.replace(live);
        }
    }
}
