//! State of one node, in a word and a sign.

use crate::cluster_view::ClusterView;
use crate::page::Tone;
use crate::pod_view::PodView;
use stayput_restart::{MemberStep, NodeReport, Outcome, UpdateStep};

/// State of a node, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
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

impl State {
    pub(super) fn of(view: &ClusterView, pod: &PodView) -> Self {
        let report = view.node_report(&pod.node);
        let members = view.restart().into_iter().flat_map(|restart| &restart.members);
        let mut members = members.filter(|member| member.pod_uid == pod.uid);
        let member = members.next();
        let is_blocked = report.is_some_and(|report| report.blocked_by.is_some());
        if report.is_some_and(|report| report.down.is_some()) {
            return Self::Down;
        }
        match member.map(|member| member.step) {
            Some(MemberStep::Restarting | MemberStep::GivingBack | MemberStep::Aborting) => {
                return Self::UnderWay;
            }
            Some(MemberStep::Finished) => {
                let ending = member.and_then(|member| member.ending.as_ref());
                return if ending.is_some_and(|ending| ending.outcome != Outcome::Done) {
                    Self::NotDone
                } else if pod.ready {
                    Self::Done
                } else {
                    Self::NotReady
                };
            }
            Some(MemberStep::Scheduled) if is_blocked => return Self::Blocked,
            Some(MemberStep::Scheduled) => return Self::Waiting,
            None => {}
        }
        match () {
            () if view.is_kept_stopped(pod) => Self::KeptStopped,
            () if is_blocked => Self::Blocked,
            () if !pod.ready => Self::NotReady,
            () if is_restarted(report) => Self::Pending,
            () => Self::Ready,
        }
    }

    pub(super) const fn word(self) -> &'static str {
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

    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Down => "✕",
            Self::NotDone => "‼",
            Self::UnderWay => "↻",
            Self::Blocked => "■",
            Self::NotReady => "○",
            Self::Waiting => "…",
            Self::KeptStopped => "‖",
            Self::Pending => "△",
            Self::Done => "✓",
            Self::Ready => "●",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::UnderWay => "active",
            Self::Down
            | Self::NotDone
            | Self::Blocked
            | Self::NotReady
            | Self::Waiting
            | Self::KeptStopped
            | Self::Pending
            | Self::Done
            | Self::Ready => super::text::class(self.tone()),
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Down | Self::NotDone | Self::Blocked => Tone::Bad,
            Self::NotReady | Self::Pending | Self::UnderWay => Tone::Warning,
            Self::Waiting | Self::KeptStopped => Tone::Neutral,
            Self::Done | Self::Ready => Tone::Good,
        }
    }
}

/// True if the node needs a restart: not if its pod only gets labels, and not if it leaves.
fn is_restarted(report: Option<&NodeReport>) -> bool {
    report.and_then(|report| report.step).is_some_and(UpdateStep::is_of_a_restart)
}
