//! One node of a cluster: its pod, what the status says of it, and its part in the restart under way. Terminal,
//! JSON and page take the code and message of a node from here.

use stayput_restart::{Member, MemberStep, NodeReport, Outcome, UpdateStep};

use crate::view::pod::PodView;
use crate::view::{ClusterView, Tone};

/// One node, as far as it has a pod and the status lists it.
#[derive(Clone, Copy)]
pub(crate) struct NodeView<'a> {
    pub(crate) cluster: &'a ClusterView,
    pub(crate) name: &'a str,
    pub(crate) pod: Option<&'a PodView>,
    pub(crate) report: Option<&'a NodeReport>,
}

impl<'a> NodeView<'a> {
    /// Phase of its restart, as its pod shows it; without a pod, as the status has it.
    pub(crate) fn phase(&self) -> Option<&'a str> {
        match self.pod {
            Some(pod) => pod.phase.as_deref(),
            None => self.report.and_then(|report| report.phase.as_deref()),
        }
    }

    /// The phase; without one, a text if the node is kept stopped.
    pub(crate) fn phase_or_kept(&self) -> &'a str {
        let otherwise = if self.is_kept_stopped() { "(kept stopped)" } else { "-" };
        self.phase().unwrap_or(otherwise)
    }

    /// True if an annotation or the spec keeps it stopped.
    pub(crate) fn is_kept_stopped(&self) -> bool {
        self.pod.is_some_and(|pod| self.cluster.is_kept_stopped(pod))
    }

    pub(crate) fn is_down(&self) -> bool {
        self.report.is_some_and(|report| report.down.is_some())
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.report.is_some_and(|report| report.blocked_by.is_some())
    }

    /// Why it is down, what it waits for, and what to do; or that the status has no room for it.
    pub(crate) fn message(&self) -> Option<String> {
        let message = self.report.and_then(|report| report.message.clone());
        message.or_else(|| self.cluster.left_out(self.name))
    }

    /// The message with its code; a text if there is nothing to say of the node.
    pub(crate) fn why(&self) -> String {
        let message = self.report.and_then(|report| report.message.as_deref());
        if self.pod.is_none() {
            return message.unwrap_or("its pod no longer exists").to_owned();
        }
        let blocked_by = self.report.and_then(|report| report.blocked_by.as_deref());
        match (message, if self.is_down() { Some("DOWN") } else { blocked_by }) {
            (Some(message), Some(code)) => format!("{code}: {message}"),
            (Some(message), None) => message.to_owned(),
            (None, _) if self.is_kept_stopped() => "it is kept stopped".into(),
            (None, _) => match self.message() {
                Some(unknown) => unknown,
                None if self.phase().is_some() => {
                    "the reconciler has not reported on it yet".into()
                }
                None => "nothing to do".into(),
            },
        }
    }

    /// The code to read about in the runbook. Nodes that are down share a page.
    pub(crate) fn code(&self) -> Option<&'a str> {
        let report = self.report?;
        let down = report.down.as_ref().map(|_| "nodes_down");
        down.or(report.blocked_by.as_deref()).or(report.waits_for.as_deref())
    }

    /// The node's part in the restart under way.
    pub(crate) fn member(&self) -> Option<&'a Member> {
        let uid = &self.pod?.uid;
        self.cluster.restart()?.members.iter().find(|member| member.pod_uid == *uid)
    }

    pub(crate) fn state(&self) -> NodeState {
        if self.is_down() {
            return NodeState::Down;
        }
        let is_ready = self.pod.is_some_and(|pod| pod.ready);
        let member = self.member();
        match member.map(|member| member.step) {
            Some(MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting) => {
                return NodeState::UnderWay;
            }
            Some(MemberStep::Finished) => {
                let ending = member.and_then(|member| member.ending.as_ref());
                return if ending.is_some_and(|ending| ending.outcome != Outcome::Done) {
                    NodeState::NotDone
                } else if is_ready {
                    NodeState::Done
                } else {
                    NodeState::NotReady
                };
            }
            Some(MemberStep::Scheduled) if self.is_blocked() => return NodeState::Blocked,
            Some(MemberStep::Scheduled) => return NodeState::Waiting,
            None => {}
        }
        // Not if its pod only gets labels, and not if it leaves.
        let step = self.report.and_then(|report| report.step);
        match () {
            () if self.is_kept_stopped() => NodeState::KeptStopped,
            () if self.is_blocked() => NodeState::Blocked,
            () if !is_ready => NodeState::NotReady,
            () if step.is_some_and(UpdateStep::is_of_a_restart) => NodeState::Pending,
            () => NodeState::Ready,
        }
    }
}

/// State of a node, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeState {
    Down,
    NotDone,
    UnderWay,
    Blocked,
    NotReady,
    Waiting,
    KeptStopped,
    Pending,
    Done,
    Ready,
}

impl NodeState {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::NotDone => "not done",
            Self::UnderWay => "under way",
            Self::Blocked => "blocked",
            Self::NotReady => "not ready",
            Self::Waiting => "waiting",
            Self::KeptStopped => "kept stopped",
            Self::Pending => "restart needed",
            Self::Done => "done",
            Self::Ready => "ready",
        }
    }

    pub(crate) const fn tone(self) -> Tone {
        match self {
            Self::Down | Self::NotDone | Self::Blocked => Tone::Bad,
            Self::NotReady | Self::Pending | Self::UnderWay => Tone::Warning,
            Self::Waiting | Self::KeptStopped => Tone::Neutral,
            Self::Done | Self::Ready => Tone::Good,
        }
    }
}
