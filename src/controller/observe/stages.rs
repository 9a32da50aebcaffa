//! The two stages of an observation, and their readers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use stayput_restart::{Engine, Ledger, Manager, Pod, awaited_starts, start_is_due};
use tokio::time::{Instant, timeout};

use super::Scope;
use super::absent_pods::{Missing, OrderedReady};
use super::content::ContentReader;
use super::dry_runs::{PatchDryRuns, UndoDryRuns};
use super::endpoints::Endpoints;
use super::engine::{DataPaths, EngineView, ViewError, endpoints};
use super::managers::{Answer, Managers, ask};
use super::operator_objects::OperatorObjects;
use super::owners::Owners;
use super::replacement::Claims;
use super::room::Rooms;
use super::snapshot::{self, Ages};
use super::sources::{SourceReader, objects_of};
use crate::apiserver::Apiserver;
use crate::credentials::{ClientOfPod, CredentialsError, Reach};
use crate::metrics::Metrics;
use crate::pods::PodFacts;

/// Time for the engine's answers while a start comes next: engines that run may hang, or elect another
/// master, and nothing that they could say changes the start.
const ENGINE_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Readers of the first stage: what each outside system says, whatever the others do.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Managers: the status of each.
    pub(crate) managers: Managers,
    /// Engine: nodes, votes, settings, shard copies and health.
    pub(crate) engine: EngineView,
    /// Apiserver: the Secrets and ConfigMaps of the config.
    pub(super) sources: SourceReader,
    /// Apiserver: the Secrets and ConfigMaps that containers read when they are started.
    content: ContentReader,
    /// Apiserver: the StatefulSets of the pods, and their revisions.
    pub(crate) owners: Owners,
    /// Apiserver: the objects that operators make the pods from.
    pub(crate) operator_objects: OperatorObjects,
    /// From the engine: where each pod has its data.
    pub(super) data_paths: DataPaths,
    /// From the owners: pods that are not there although their StatefulSet wants them.
    pub(crate) missing: Missing,
}

/// Readers of the second stage: questions to the apiserver about the pods as the facts show them.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Would it delete the pod, take its replacement, and is there room for that?
    rooms: Rooms,
    /// Has a replacement the volume claims of the pod before it?
    claims: Claims,
    /// Would it take the changes of the pod?
    pub(super) patch_dry_runs: PatchDryRuns,
    /// Would it take the changes back?
    undo_dry_runs: UndoDryRuns,
    /// Do Services still send requests to a pod that drains?
    pub(crate) endpoints: Endpoints,
}

/// One look, as its readers need it.
pub(super) struct Look<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) namespace: &'a str,
    pub(super) ledger: &'a Ledger,
    pub(super) pods: &'a [Arc<PodFacts>],
    pub(super) ages: Ages<'a>,
    /// True if a decision depends on the engine.
    pub(super) asks_engine: bool,
}

/// Clients of one look, made before its readers begin.
pub(super) struct LookClients {
    /// Managers of nodes under way.
    pub(super) awaited: Vec<ClientOfPod>,
    /// `None` if the engine is not asked.
    pub(super) engine: Option<Result<Reach, CredentialsError>>,
}

impl Facts {
    /// Reads the facts that are due, at the same time. Returns the managers' answers, and the engine's if it
    /// is asked.
    pub(super) async fn read(
        &mut self,
        look: &Look<'_>,
        LookClients { awaited, engine: reach }: LookClients,
        api: &Apiserver,
        metrics: &Metrics,
    ) -> (Vec<Answer>, Option<Result<Engine, ViewError>>) {
        let Look { scope, namespace, ledger, pods, ages, .. } = look;
        let Scope { cluster, spec, checked, .. } = scope;
        let stopped_before = self.managers.stopped(ledger);
        let endpoints = endpoints(pods, ages, spec.engine.port);
        self.engine.expect_pods(pods.len());
        let asked = async {
            let asked = ask(awaited, metrics);
            let Some(reach) = reach else { return (asked.await, None) };
            let zone = &checked.policy.zone_attribute;
            let engine = self.engine.observe(reach, endpoints, zone, Some(*ledger), metrics);
            let next = |answers: &[Answer]| NextStart::of(ledger, &stopped_before, answers);
            let (answers, engine) = start_first(asked, engine, next).await;
            (answers, Some(engine))
        };
        let sets = self.missing.sets();
        let ((mut answers, engine), answered, (), (), (), ()) = tokio::join!(
            asked,
            self.managers.background.answers(),
            self.sources.read(api, &cluster.metadata, checked, pods, ages),
            self.content.read(api, namespace, pods, ages),
            self.owners.read(api, namespace, pods, ages, &sets),
            self.operator_objects.read(api, namespace, pods, ages),
        );
        answers.extend(answered);
        (answers, engine)
    }

    /// True if a start of the ledger comes next, by the managers' last answers.
    pub(super) fn start_comes_next(&self, ledger: &Ledger) -> bool {
        awaited_starts(ledger, |uid| self.managers.of(uid).ok()).next().is_some()
    }

    /// The pods with the facts about them. A size that the last dry run has refused is a replacement.
    pub(super) fn fill(&mut self, look: &Look<'_>, dry_runs: &mut PatchDryRuns) -> Vec<Pod> {
        let replaced = self.owners.replaced_by_operators(look.pods);
        self.owners.see_labels(look.pods, snapshot::now());
        let pods = look.pods.iter();
        pods.map(|facts| self.pod(look, facts, &replaced, dry_runs)).collect()
    }

    fn pod(
        &mut self,
        look: &Look<'_>,
        facts: &Arc<PodFacts>,
        replaced: &BTreeSet<String>,
        dry_runs: &mut PatchDryRuns,
    ) -> Pod {
        let Scope { spec, checked, .. } = look.scope;
        let (manager, engine) = (spec.manager.port, spec.engine.port);
        let mut pod = snapshot::pod(facts);
        pod.container = facts.container_with(manager).map(str::to_owned);
        pod.program = facts.manager_program(manager).map(str::to_owned);
        pod.deadly_probe = facts.deadly_probe(engine);
        pod.outdated = self.owners.outdated(facts);
        if let (Some(operator), Some(owner)) = (&mut pod.operator, &facts.owner) {
            operator.replaces_pods = replaced.contains(&owner.name);
        }
        let data_paths = self.data_paths.of(&facts.uid);
        let of_template = self.owners.update(facts, manager, data_paths);
        let container = facts.engine_container(manager);
        pod.update = self.content.added_to(of_template, facts, container, &checked.policy);
        pod.ahead = self.owners.ahead(facts).map(Box::new);
        pod.not_started = facts.not_started(manager);
        pod.replace_unstarted(&checked.policy);
        dry_runs.replace_refused(&checked.policy, facts, &mut pod);
        pod.live = snapshot::live(facts, manager, data_paths);
        pod.sources = self.sources.of(checked, facts);
        pod.config_from = objects_of(checked, facts);
        pod.manager = self.managers.of(&facts.uid);
        pod.replace_unknowing();
        pod.ignores_change = pod.change().is_some_and(|(runs_on, wanted)| {
            let known = self.managers.configs(&facts.uid);
            let alike = self.sources.alike(checked, facts, known);
            look.ledger.ignored_changes.covers(runs_on, wanted, &alike)
        });
        pod
    }
}

/// The next start that is owed by the ledger, as the answers of managers under way show it.
enum NextStart {
    /// No start, until an engine has ended or is stopped.
    None,
    /// An engine that is to be started has not been stopped yet.
    Awaited,
    /// The engine is stopped and its config is mounted: the start can be sent.
    Due,
}

impl NextStart {
    /// Leaves out the pods in `stopped_before`: a start that cannot be sent must not hide the engine for ever.
    fn of(ledger: &Ledger, stopped_before: &BTreeSet<String>, answers: &[Answer]) -> Self {
        let told = answers.iter().filter_map(|answer| Some((answer.uid(), answer.manager()?)));
        let told: BTreeMap<&str, Manager> = told.collect();
        let manager = |uid: &str| told.get(uid).cloned();
        if start_is_due(ledger, |uid| manager(uid).filter(|_| !stopped_before.contains(uid))) {
            Self::Due
        } else if awaited_starts(ledger, manager).next().is_some() {
            Self::Awaited
        } else {
            Self::None
        }
    }
}

/// Asks managers and the engine at the same time. Once the managers have answered, the engine is waited for only
/// as long as the next start allows.
async fn start_first<T>(
    asked: impl Future<Output = Vec<Answer>>,
    engine: impl Future<Output = Result<T, ViewError>>,
    next: impl FnOnce(&[Answer]) -> NextStart,
) -> (Vec<Answer>, Result<T, ViewError>) {
    let (mut asked, mut engine) = (pin!(asked), pin!(engine));
    tokio::select! {
        biased;
        answers = &mut asked => {
            let first = Err(ViewError::StartFirst);
            let engine = match next(&answers) {
                NextStart::Due => first,
                NextStart::Awaited => timeout(ENGINE_ANSWER_WAIT, engine).await.unwrap_or(first),
                NextStart::None => engine.await,
            };
            (answers, engine)
        }
        engine = &mut engine => (asked.await, engine),
    }
}

impl Questions {
    /// Asks what is due, at the same time; about pods that are not under way only for this long.
    pub(super) async fn read(
        &mut self,
        look: &Look<'_>,
        seen: &[Pod],
        facts: &Facts,
        api: &Apiserver,
        window: Duration,
    ) {
        let (policy, ages, end) = (&look.scope.checked.policy, &look.ages, Instant::now() + window);
        let both: Vec<_> = look.pods.iter().zip(seen).collect();
        tokio::join!(
            Box::pin(self.rooms.read(api, policy, &both, &facts.owners, ages, end)),
            Box::pin(self.claims.read(api, look.ledger, look.pods)),
            Box::pin(self.patch_dry_runs.read(api, policy, &both, ages, end)),
            Box::pin(self.undo_dry_runs.read(api, look.ledger, &both)),
        );
    }

    /// Writes the answers into the pods.
    pub(super) fn fill(&self, look: &Look<'_>, facts: &Facts, seen: &mut [Pod]) {
        let ordered_ready =
            OrderedReady::of(&facts.owners, look.pods, seen, look.ledger, snapshot::now());
        for (pod, facts) in seen.iter_mut().zip(look.pods) {
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
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const MANAGERS: Duration = Duration::from_millis(200);

    /// How long an engine that never answers is waited for, beside managers that answer after 200 ms.
    async fn waited(next: NextStart) -> Option<Duration> {
        let began = Instant::now();
        let asked = async {
            sleep(MANAGERS).await;
            Vec::new()
        };
        let read = start_first(asked, pending::<Result<(), _>>(), |_| next);
        let (_, engine) = timeout(Duration::from_secs(60), read).await.ok()?;
        assert!(matches!(engine, Err(ViewError::StartFirst)));
        Some(began.elapsed())
    }

    #[tokio::test(start_paused = true)] // proves RESTART-38
    async fn a_start_that_the_managers_show_waits_a_second_at_most_for_the_engine() {
        assert_eq!(waited(NextStart::None).await, None);
        assert_eq!(waited(NextStart::Awaited).await, Some(MANAGERS + ENGINE_ANSWER_WAIT));
        assert_eq!(waited(NextStart::Due).await, Some(MANAGERS));
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_is_quicker_than_the_managers_is_known() {
        let asked = async {
            sleep(MANAGERS).await;
            Vec::new()
        };
        let engine = async { Ok(7) };
        let (_, engine) = start_first(asked, engine, |_| NextStart::Due).await;
        assert!(matches!(engine, Ok(7)));
    }
}
