//! Faults, and how they are repaired.

mod kinds;

use proptest::prelude::*;

use super::super::driver::Driver;
use super::super::scenario::play_line;
use super::super::world::SimPod;
use super::{deaths_in_a_slot, people};
use crate::Unknown;
use kinds::TEMPLATES;
pub(super) use kinds::{
    configs, consents, failures, full_stops, holds, in_order, refused_patches, templates,
};

/// A fault; a number selects the node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Freeze(usize),
    Thaw(usize),
    Disconnect(usize),
    Reconnect(usize),
    ContainerRestarts(usize),
    EngineDies(usize),
    /// The engine of the node that holds a slot.
    HolderDies,
    /// It stays in the node list, and answers nobody until the next fault.
    EngineHangs(usize),
    EngineAnswers(usize),
    /// A shard copy fails, and its node stays.
    CopyFails(usize),
    EngineRefuses(usize),
    EngineDoesNotEnd(usize),
    ConfigDoesNotArrive(usize),
    SourcesMove(usize),
    Replace(usize),
    /// Its owner replaces it after a while.
    OwnerReplaces(usize),
    /// Its pod is being deleted, and its engine runs until the hook before its stop is over. The kubelet
    /// mounts an old config in the new one first.
    Evicted(usize),
    /// A container beside the engine's fails for good.
    SidecarCrashes(usize),
    /// The list lacks its pod for a while that is shorter than a phase.
    Missed(usize),
    /// The apiserver refuses every patch of its pod's annotations.
    PatchesRefused(usize),
    /// Only of a node that cannot be elected: without a majority nothing could end.
    GoneForGood(usize),
    PersonStops(usize),
    PersonStarts(usize),
    PhaseAway(usize),
    PhaseMoved(usize),
    /// Services begin to send it requests, or never have.
    ServicesSend(usize),
    NoService(usize),
    KeepStopped(usize),
    LetRun(usize),
    EngineUnreachable,
    EngineReachable,
    /// After a full stop it reads its state for so many seconds, and hides it until then.
    StateReadIn(usize),
    /// Every engine ends, and ends again on the config it had.
    AllFail,
    Pause,
    Resume,
    /// No maintenance window is open for so many minutes.
    WindowsClosed(usize),
    /// A gate after a restart is put there; or the last restart is found to be good.
    GateAfter,
    Checked,
    Cancel,
    AskAgain,
    AskOutsideWindows,
    AskAllowingOutage,
    AskCoordinated(usize),
    AllSourcesMove,
    /// The sources of all nodes become `v1`, `v2`, …; or of one.
    AllSourcesBecome(usize),
    SourcesBecome(usize, usize),
    /// The owner wants another template, or an earlier one again; one of [`TEMPLATES`].
    Template(usize),
    /// Its Kubernetes node, which its volume is on, takes no other pod; or does again.
    Cordoned(usize),
    Uncordoned(usize),
    /// The apiserver lets us delete no pod; or does again.
    DeletionForbidden,
    DeletionAllowed,
    /// The apiserver lets us change images and sizes of no pod; or does again.
    ChangesForbidden,
    ChangesAllowed,
    /// The apiserver lowers no size to the one that all pods had at first; or does again.
    LoweringRefused,
    LoweringTaken,
    Crash,
    /// Reconciler or apiserver are lost for so many minutes.
    ControllerAway(usize),
    /// Another controller carries out a plan for an old snapshot.
    Stale,
    /// The SearchCluster is deleted: nothing repairs that.
    Deleted,
    /// The same with all of its pods.
    DeletedWithPods,
    /// A plan is carried out whose snapshot lacks the engine, a manager or a pod.
    BlindToEngine,
    BlindToManager(usize),
    BlindToPod(usize),
}

pub(super) fn faults(within: u64) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    use Fault::*;
    let of_node = (0_usize..26, 0_usize..5).prop_map(|(which, node)| match which {
        0 => Freeze(node),
        1 => Thaw(node),
        2 => Disconnect(node),
        3 => Reconnect(node),
        4 => ContainerRestarts(node),
        5 => EngineDies(node),
        6 => EngineRefuses(node),
        7 => EngineDoesNotEnd(node),
        8 => ConfigDoesNotArrive(node),
        9 => SourcesMove(node),
        10 => Replace(node),
        11 => PersonStops(node),
        12 => PersonStarts(node),
        13 => PhaseAway(node),
        14 => PhaseMoved(node),
        15 => CopyFails(node),
        16 => Missed(node),
        17 => GoneForGood(node),
        18 => OwnerReplaces(node),
        19 => SidecarCrashes(node),
        20 => ServicesSend(node),
        21 => NoService(node),
        22 => EngineHangs(node),
        23 => EngineAnswers(node),
        24 => Evicted(node),
        _ => KeepStopped(node),
    });
    let blind = prop_oneof![
        Just(BlindToEngine),
        (0_usize..5).prop_map(BlindToManager),
        (0_usize..5).prop_map(BlindToPod),
        (0_usize..5).prop_map(LetRun),
        Just(Stale),
    ];
    let of_all = prop_oneof![
        Just(EngineUnreachable),
        Just(EngineReachable),
        Just(AllFail),
        Just(Pause),
        Just(Resume),
        Just(Cancel),
        Just(AskAgain),
        (3_usize..5).prop_map(AskCoordinated),
        Just(AllSourcesMove),
        Just(Crash),
        (5_usize..40).prop_map(ControllerAway),
        Just(Stale),
    ];
    let fault = prop_oneof![2 => of_node, 1 => of_all, 1 => blind];
    prop::collection::vec((0..within, fault), 0..10).prop_map(in_order)
}

impl Fault {
    pub(super) fn happens(self, driver: &mut Driver) {
        let count = driver.world.pods.len();
        let name = |node: usize| format!("logs-{}", node % count);
        let is_gone = |node: usize| driver.world.pods[node % count].gone;
        let is_nobody_left = driver.world.pods.iter().all(|pod| pod.gone);
        let is_of_nobody = self.node().map_or(is_nobody_left, is_gone);
        if is_of_nobody && !matches!(self, Self::Replace(_)) {
            return;
        }
        let line = match self {
            Self::Freeze(node) => format!("freeze manager {}", name(node)),
            Self::Thaw(node) => format!("thaw manager {}", name(node)),
            Self::Disconnect(node) => format!("disconnect manager {}", name(node)),
            Self::Reconnect(node) => format!("reconnect manager {}", name(node)),
            Self::ContainerRestarts(node) => format!("container of {} restarts", name(node)),
            Self::EngineDies(node) => format!("engine of {} dies", name(node)),
            Self::HolderDies => match deaths_in_a_slot::holder(driver) {
                Some(name) => format!("engine of {name} dies"),
                None => return,
            },
            Self::EngineHangs(node) => format!("engine of {} hangs", name(node)),
            Self::EngineAnswers(node) => format!("engine of {} answers", name(node)),
            Self::CopyFails(node) => format!("a copy on {} fails", name(node)),
            Self::Missed(node) => {
                play_line(driver, &format!("pod {} is not listed", name(node)));
                driver.run(20_000, |_| false);
                format!("pod {} is listed", name(node))
            }
            Self::GoneForGood(node) => {
                if may_go(driver, &name(node)) {
                    format!("pod {} is gone for good", name(node))
                } else {
                    return;
                }
            }
            Self::PatchesRefused(node) => format!("patches of {} are refused", name(node)),
            Self::EngineRefuses(node) => format!("engine of {} refuses v2", name(node)),
            Self::EngineDoesNotEnd(node) => format!("engine of {} does not end", name(node)),
            Self::ConfigDoesNotArrive(node) => format!("config of {} does not arrive", name(node)),
            Self::SourcesMove(node) => format!("change config {} v3", name(node)),
            Self::Replace(node) => format!("replace pod {}", name(node)),
            Self::OwnerReplaces(node) => {
                play_line(driver, &format!("owner will replace {}", name(node)));
                driver.run(20_000, |_| false);
                format!("replace pod {}", name(node))
            }
            Self::Evicted(node) => {
                play_line(driver, &format!("pod {} is being deleted", name(node)));
                driver.run(20_000, |_| false);
                format!("replace pod {} on v1", name(node))
            }
            Self::SidecarCrashes(node) => format!("sidecar of {} crashes", name(node)),
            Self::PersonStops(node) => format!("person stops {}", name(node)),
            Self::PersonStarts(node) => format!("person starts {}", name(node)),
            Self::PhaseAway(node) => format!("annotate pod {} restart-phase -", name(node)),
            Self::PhaseMoved(node) => format!("annotate pod {} restart-phase start", name(node)),
            Self::ServicesSend(node) => format!("services send requests to {}", name(node)),
            Self::NoService(node) => format!("no service has {}", name(node)),
            Self::KeepStopped(node) => format!("annotate pod {} stopped true", name(node)),
            Self::LetRun(node) => format!("annotate pod {} stopped -", name(node)),
            Self::EngineUnreachable => "engine unreachable".into(),
            Self::EngineReachable => "engine reachable".into(),
            Self::StateReadIn(seconds) => format!("the engine reads its state in {seconds}s"),
            Self::Pause => "pause".into(),
            Self::Resume => "resume".into(),
            Self::WindowsClosed(minutes) => format!("windows closed for {minutes}m"),
            Self::GateAfter => "gate after check waits".into(),
            Self::Checked => match driver.world.ledger().last_to_check() {
                Some(last) => format!("gate after check {}", last.id),
                None => return,
            },
            Self::Cancel => "cancel r1".into(),
            Self::AskAgain => "request rolling r2 deadline 15m".into(),
            Self::AskOutsideWindows => "request rolling r5 deadline 15m outside windows".into(),
            Self::AskAllowingOutage => "request rolling r6 deadline 15m allow outage".into(),
            Self::AskCoordinated(id) => format!("request coordinated r{id} deadline 15m"),
            Self::AllSourcesMove => "change config logs-* v4".into(),
            Self::AllSourcesBecome(version) => format!("change config logs-* v{version}"),
            Self::SourcesBecome(node, version) => {
                format!("change config {} v{version}", name(node))
            }
            Self::Template(which) => format!("template logs-* {}", TEMPLATES[which]),
            Self::Cordoned(node) => format!("the node of {} is cordoned", name(node)),
            Self::Uncordoned(node) => format!("the node of {} is uncordoned", name(node)),
            Self::DeletionForbidden => "pods must not be deleted".into(),
            Self::DeletionAllowed => "pods may be deleted".into(),
            Self::ChangesForbidden => "pods must not be changed".into(),
            Self::ChangesAllowed => "pods may be changed".into(),
            Self::LoweringRefused => "memory a is refused".into(),
            Self::LoweringTaken => "memory a is taken".into(),
            Self::Crash => "crash".into(),
            Self::Deleted => "delete the searchcluster".into(),
            Self::DeletedWithPods => {
                driver.page.script("delete all pods, and their owner");
                driver.world.pods.iter_mut().for_each(SimPod::goes_for_good);
                "delete the searchcluster".into()
            }
            Self::ControllerAway(minutes) => {
                play_line(driver, "crash");
                play_line(driver, "controller off");
                play_line(driver, &format!("run {minutes}m"));
                "controller on".into()
            }
            Self::AllFail => {
                play_line(driver, "engine of logs-* refuses v1");
                "engine of logs-* dies".into()
            }
            Self::Stale => return stale(driver),
            Self::BlindToEngine | Self::BlindToManager(_) | Self::BlindToPod(_) => {
                return self.blind(driver);
            }
        };
        play_line(driver, &line);
    }

    /// The number of the node that it happens to.
    fn node(self) -> Option<usize> {
        use Fault::*;
        match self {
            Freeze(node)
            | Thaw(node)
            | Disconnect(node)
            | Reconnect(node)
            | ContainerRestarts(node)
            | EngineDies(node)
            | EngineHangs(node)
            | EngineAnswers(node)
            | CopyFails(node)
            | EngineRefuses(node)
            | EngineDoesNotEnd(node)
            | ConfigDoesNotArrive(node)
            | SourcesMove(node)
            | Replace(node)
            | Missed(node)
            | PatchesRefused(node)
            | GoneForGood(node)
            | OwnerReplaces(node)
            | Evicted(node)
            | SidecarCrashes(node)
            | PersonStops(node)
            | PersonStarts(node)
            | PhaseAway(node)
            | PhaseMoved(node)
            | ServicesSend(node)
            | NoService(node)
            | KeepStopped(node)
            | LetRun(node)
            | Cordoned(node)
            | Uncordoned(node)
            | SourcesBecome(node, _) => Some(node),
            BlindToManager(_) | BlindToPod(_) | EngineUnreachable | EngineReachable | AllFail
            | Template(_) | Pause | Resume | WindowsClosed(_) | GateAfter | Checked | Cancel
            | AskAgain | AskOutsideWindows | AskAllowingOutage | AskCoordinated(_)
            | AllSourcesMove | AllSourcesBecome(_) | DeletionForbidden | DeletionAllowed
            | StateReadIn(_) | ChangesForbidden | ChangesAllowed | LoweringRefused
            | LoweringTaken | HolderDies | Crash | Deleted | DeletedWithPods | Stale
            | BlindToEngine | ControllerAway(_) => None,
        }
    }

    fn blind(self, driver: &mut Driver) {
        driver.page.script(&format!("{self:?}"));
        let flushed = driver.flushed.clone();
        let unseen = match self {
            Self::BlindToPod(node) => listed(driver, node),
            _ => None,
        };
        if let Some(at) = unseen {
            driver.world.pods[at].unlisted = true;
        }
        let (mut snapshot, version) = driver.world.observe(&flushed);
        if let Some(at) = unseen {
            driver.world.pods[at].unlisted = false;
        }
        let at = |node: usize| node % snapshot.pods.len().max(1);
        let unknown =
            || Unknown { message: "the engine or its manager does not answer this time".into() };
        match self {
            Self::BlindToManager(_) if snapshot.pods.is_empty() => {}
            Self::BlindToManager(node) => {
                let at = at(node);
                snapshot.pods[at].manager = Err(unknown());
            }
            Self::BlindToPod(_) => {}
            _ => snapshot.engine = Err(unknown()),
        }
        let made = driver.make(&snapshot);
        driver.follow(&snapshot, version, &made);
    }
}

/// The place of a pod that the list has.
fn listed(driver: &Driver, node: usize) -> Option<usize> {
    let pods = driver.world.pods.iter().enumerate();
    let listed: Vec<usize> = pods.filter(|(_, pod)| pod.is_listed()).map(|(at, _)| at).collect();
    (!listed.is_empty()).then(|| listed[node % listed.len()])
}

/// Whether a pod can be gone for good and everything still ends.
fn may_go(driver: &Driver, name: &str) -> bool {
    let there = driver.world.pods.iter().any(|pod| pod.name == name && !pod.gone);
    there && !driver.world.engine.roles[name].roles.contains("master")
}

/// Makes a plan, lets a minute pass, and then carries the plan out.
fn stale(driver: &mut Driver) {
    driver.page.script("a slow controller observes the cluster");
    let (snapshot, version) = driver.world.observe(&driver.flushed.clone());
    let mut made = driver.make(&snapshot);
    let named: Vec<Option<u64>> =
        made.actions.iter().map(|action| driver.world.named_version(action)).collect();
    driver.run(60_000, |_| false);
    if driver.world.object.is_gone() {
        // It reads the SearchCluster before it stops an engine.
        return;
    }
    driver.page.script("the slow one does what it planned then");
    // The apiserver refuses what names another version.
    let mut named = named.into_iter();
    made.actions.retain(|action| named.next() == Some(driver.world.named_version(action)));
    driver.follow(&snapshot, version, &made);
}

/// Repairs everything that can be repaired.
pub(super) fn repair_all(driver: &mut Driver) {
    driver.page.script("from here on all goes well");
    driver.fates.clear();
    for at in 0..driver.world.pods.len() {
        let name = driver.world.pods[at].name.clone();
        let now = driver.world.now;
        let living = &mut driver.world.pod(&name).living;
        living.is_repaired(now);
        let is_broken = living.limits.break_engine(&living.running_image, &living.env);
        let breaks = living.limits.broken_variables.clone();
        driver.world.pod(&name).is_scheduled(now);
        let machine = &mut driver.world.pod(&name).machine;
        machine.unreachable = false;
        machine.habits.refuses.clear();
        machine.habits.never_ready.clear();
        machine.habits.fails = is_broken;
        machine.habits.breaks = breaks;
        machine.hangs(now, false);
        let stuck = std::mem::take(&mut machine.habits.immortal)
            && machine.life().desired() == stayput_api::Desired::Stopped;
        if machine.frozen {
            driver.world.thaw(&name);
        }
        let pod = driver.world.pod(&name);
        pod.unlisted = false;
        pod.refuses_patches = false;
        if stuck {
            pod.machine.lets_go(now);
        }
        pod.unstick(now);
        driver.world.annotate(&name, crate::annotation::STOPPED, None);
    }
    driver.world.engine.unreachable = false;
    driver.world.engine.refuses_writes = false;
    let object = driver.world.object.touch();
    object.paused = false;
    object.annotations.retain(|key, _| !crate::annotation::is_gate(key));
    let coordinated = driver
        .world
        .ledger()
        .restart
        .as_ref()
        .is_some_and(|restart| restart.request.strategy == crate::Strategy::Coordinated);
    if coordinated {
        // A restart that only goes forward and cannot end needs people: they must start the nodes
        // that they have stopped, and request another restart.
        for name in people::stopped_by_hand(driver) {
            people::until_ended(driver, &name);
            play_line(driver, &format!("person starts {name}"));
        }
        play_line(driver, "request coordinated r9 deadline 15m");
    }
    driver.world.settle();
}
