//! One restart in the ledger, and the nodes that are part of it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Outcome, written};
use crate::{Node, PodUpdate, Request, Strategy, Time};
use stayput_api::ConfigChoice;
use stayput_pod_update::UpdateStep;

/// The restart under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// The request.
    pub request: Request,
    /// When it was accepted.
    pub started: Time,
    /// When the first node got its slot: estimates are measured from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Time>,
    /// Where a coordinated restart goes; a rolling one is always open.
    #[serde(default)]
    pub direction: Direction,
    /// Set once no further node may be stopped, unless it goes forward: how it will end when the
    /// nodes under way are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Since when it is seen that none of its nodes can be restarted, only of a restart that ends if that
    /// lasts; or that all are done and their pods do not show it. Only if it has lasted for a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_since: Option<Time>,
    /// Actions of a coordinated restart that are done once, before its first stop.
    #[serde(default)]
    pub once: Once,
    /// Coordinated: when the checksums were fixed; from then on starts are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Time>,
    /// The nodes, by name and uid of the pod. In JSON they are in two fields: see [`written`].
    #[serde(flatten, with = "written")]
    #[schemars(flatten, with = "written::Written")]
    pub members: Vec<Member>,
}

/// Where a coordinated restart goes. It never turns twice.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// No member has joined on the new config yet: it can still turn back.
    #[default]
    Open,
    /// A member has joined, of this restart or of the one whose place it took: forward only.
    Forward,
    /// All members return to the last good config.
    Back,
}

/// How a restart will end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// For programs.
    pub outcome: Outcome,
    /// For people.
    pub reason: String,
}

impl Ending {
    /// The ending of a restart that did everything that was requested.
    pub const fn done() -> Self {
        Self { outcome: Outcome::Done, reason: String::new() }
    }
}

/// Actions of a coordinated restart that are done once and never again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Once {
    /// Allocation was limited.
    #[serde(default)]
    pub allocation: bool,
    /// Flush was tried.
    #[serde(default)]
    pub flush: bool,
}

/// One node's part in a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Uid of the pod.
    pub pod_uid: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the engine's node.
    pub node: String,
    /// How far it is.
    pub step: MemberStep,
    /// Since when.
    pub since: Time,
    /// Sequence of our stop; 0 while it is scheduled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stop_sequence: u64,
    /// Sequence of our start, higher than that of the stop; 0 while it is scheduled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_sequence: u64,
    /// Checksum that the engine is to be started with, if its manager knows the engine's config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Ephemeral id the node had before its stop: a new one proves that it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_id: Option<String>,
    /// Id of the engine's node, under which a shutdown record is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Can be elected: coordinated restarts start these first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub master_eligible: bool,
    /// Roles of the engine's node: while it is down, the engine does not list it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<String>,
    /// Zone of the engine's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How often it gave its slot back because the rules did not allow its stop any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_back: u32,
    /// Since when its pod has been absent without another one in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Time>,
    /// Since when its manager has not answered, in a restart that only goes forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Time>,
    /// The change of its pod between stop and start, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Box<MemberUpdate>>,
    /// Of a node that is done: how it was restarted, unless only its process was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_by: Option<UpdateStep>,
    /// How it is brought back, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<Compensation>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// How far a member is. What the pod shows between (`stop`, `start`) follows from what its manager
/// says: the sequences tell which of our requests took effect, so no write is needed between.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum MemberStep {
    /// Waits for its turn.
    #[default]
    Scheduled,
    /// Holds a slot: it may be stopped and started with the sequences of this entry.
    Restarting,
    /// Gives its slot back without a stop, and waits for its turn again.
    GivingBack,
    /// Brought back: it may only be started.
    Aborting,
    /// Over; its ending says how.
    Finished,
}

/// The change of a member's pod between stop and start. It is fixed when the member takes its slot: the
/// owner's template may change meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberUpdate {
    /// The update as it was observed; images and sizes are those that the pod had before.
    pub update: PodUpdate,
    /// Id of the manager's container before the stop: another one proves that it was made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Of other containers whose images change, the last ones before that, by name; empty if none was made
    /// yet. Another one proves that it was made anew.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, String>,
    /// Volume claims before the stop: the pod in its place must mount the same.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub claims: BTreeSet<String>,
    /// Their uids, as far as they may be read: a claim that was made again has another one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claim_uids: BTreeMap<String, String>,
    /// The largest heap of the engine before another amount of memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<u64>,
    /// Id of the manager's container when its images were set back: another one proves that it was
    /// made anew once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up_id: Option<String>,
    /// Images that were given up, by container, when they were set back: admission may make another image of the
    /// old one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given_up: BTreeMap<String, String>,
    /// The part of its pod that the apiserver refuses to roll back: its engine is started with it all
    /// the same.
    #[serde(default, skip_serializing_if = "Stays::is_empty")]
    pub stays: Stays,
    /// Since when it is seen that the node is back late and has its old labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_since: Option<Time>,
    /// Since when its pod is seen to be hindered by what may pass by itself: an image that cannot be pulled now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindered_since: Option<Time>,
}

/// The part of a pod that is not rolled back, since the apiserver refuses that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Stays {
    /// Containers that keep the image that is given up.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub images: BTreeSet<String>,
    /// Containers that keep the size that is given up.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub resources: BTreeSet<String>,
}

impl Stays {
    /// True if everything is rolled back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.resources.is_empty()
    }
}

/// How a member is brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compensation {
    /// Sequence of a stop before the start: only where an engine already runs on a config that a
    /// coordinated restart turned back from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<u64>,
    /// Sequence of the start, higher than all before.
    pub start_sequence: u64,
    /// The config it is started on.
    #[schemars(with = "String")]
    pub config: ConfigChoice,
}

impl Restart {
    /// A restart that is accepted now and has not begun.
    pub(crate) fn new(request: Request, started: Time, members: Vec<Member>) -> Self {
        Self {
            request,
            started,
            began: None,
            stuck_since: None,
            direction: Direction::default(),
            ending: None,
            once: Once::default(),
            frozen: None,
            members,
        }
    }

    /// True if nodes wait for their turn.
    pub fn has_scheduled(&self) -> bool {
        self.members.iter().any(|member| member.step == MemberStep::Scheduled)
    }

    /// True if all of its nodes are stopped before any is started.
    pub(crate) fn is_coordinated(&self) -> bool {
        self.request.strategy == Strategy::Coordinated
    }

    /// Number of nodes that nothing is to be done for any more, whatever their outcome.
    pub(crate) fn nodes_finished(&self) -> usize {
        self.members.iter().filter(|member| member.step == MemberStep::Finished).count()
    }

    /// The members that were restarted, or need no restart any more.
    pub(crate) fn done(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_done())
    }

    /// True if the restart only goes forward, and the time for a phase has passed since its nodes could
    /// be started; or, while they are still being stopped, since it took the place of another one.
    pub(crate) fn is_late_forward(&self, now: Time, phase_timeout: u64) -> bool {
        self.direction == Direction::Forward
            && self.goes_on_since().is_some_and(|at| now.since(at) >= phase_timeout)
    }

    /// When nodes of a coordinated restart could be started; before that, when it took another one's place.
    ///
    /// Not inlined: in a loop, rustc 1.95 read the time ahead of the check that there is a restart, at an
    /// address made from a byte that was never written.
    #[inline(never)]
    pub(crate) fn goes_on_since(&self) -> Option<Time> {
        self.frozen.or(self.began)
    }

    /// Why the restart cannot be cancelled any more, unless it can. Nodes that it has stopped can only
    /// be started on the new config.
    pub fn why_not_cancellable(&self) -> Option<&'static str> {
        if !self.is_coordinated() {
            return None;
        }
        if self.frozen.is_some() {
            return Some("every node is stopped, and all of them are started on the new config");
        }
        (self.direction == Direction::Forward).then_some(
            "it replaced a restart that only went forward, and some stopped nodes can start only on the \
             new config",
        )
    }
}

impl Member {
    /// The entry of a node that is done, without the fields that only its turn needed, so that it takes
    /// little space.
    #[must_use]
    pub fn done(self, ending: Ending) -> Self {
        let Self { pod_uid, pod, node, since, stop_sequence, start_sequence, update, .. } = self;
        let step = update.map(|fixed| fixed.update.step);
        Self {
            pod_uid,
            pod,
            node,
            step: MemberStep::Finished,
            since,
            stop_sequence,
            start_sequence,
            done_by: step.filter(|step| *step > UpdateStep::Restart),
            ending: Some(ending),
            ..Self::default()
        }
    }

    /// True if the engine's entry of the node is not that of the process before its turn.
    pub fn is_new_process(&self, node: &Node) -> bool {
        self.ephemeral_id.as_ref() != Some(&node.ephemeral_id)
    }

    /// True if the apiserver refuses to roll back a part of the pod.
    pub(crate) fn is_not_set_back(&self) -> bool {
        self.update.as_ref().is_some_and(|fixed| !fixed.stays.is_empty())
    }

    /// True if the pod has to show the result: the member had its turn, or is done without one.
    pub(crate) fn has_result(&self) -> bool {
        self.step == MemberStep::Finished && (self.stop_sequence > 0 || self.is_done())
    }

    /// True if the member ended with the outcome `done`.
    pub(crate) fn is_done(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Done)
    }

    /// True if the member holds a slot.
    pub const fn is_under_way(&self) -> bool {
        matches!(self.step, MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting)
    }
}
