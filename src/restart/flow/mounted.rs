//! The config a node is to be started with: what its sources say, and whether it is mounted.

use super::member::GAP;
use super::{Move, wait};
use crate::planner::Planner;
use crate::{Blocker, Code, Manager, Member, Pod, Sources, Time, annotation};
use stayput_api::checksum::short;

/// How long a nudge is given before the next, in milliseconds: the kubelet's own look at the
/// Secret may come a moment after the first.
const NUDGE_AGAIN: u64 = 10_000;

impl Planner<'_> {
    /// The checksum the sources have now. Without declared sources it is what is mounted.
    pub(super) fn expected_now(pod: &Pod, manager: &Manager) -> Result<Option<String>, Blocker> {
        match &pod.sources {
            Sources::Checksum(checksum) => Ok(Some(checksum.clone())),
            Sources::Undeclared => Ok(manager.mounted.clone()),
            Sources::Absent(message) => {
                Err(Blocker { code: Code::SourceAbsent, message: message.clone() })
            }
        }
    }

    /// `None` once the sources' config is the member's expected one and is mounted. `start` says
    /// that a request with the old checksum may be out: then its sequence is given up as well.
    pub(super) fn until_mounted(
        &mut self,
        member: &Member,
        pod: &Pod,
        manager: &Manager,
        start: bool,
    ) -> Option<Move> {
        let expected = match Self::expected_now(pod, manager) {
            Ok(expected) => expected,
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        if expected != member.expected {
            let mut moved = member.clone();
            moved.expected = expected;
            if start {
                moved.start_sequence += GAP;
            }
            return Some(Move::Change(Box::new(moved)));
        }
        if manager.mounted == expected {
            return None;
        }
        self.nudge(pod, expected.as_deref());
        let file = manager.lagging.as_ref().map_or(String::new(), |file| format!(" ({file})"));
        Some(wait(
            Code::ConfigNotMounted,
            format!("the new config is not mounted in {} yet{file}", pod.name),
        ))
    }

    /// Makes the kubelet look at the pod's volumes: it does at every change of the pod.
    pub(super) fn nudge(&mut self, pod: &Pod, expected: Option<&str>) {
        let short = short(expected.unwrap_or_default());
        let nudged = pod.annotations.get(annotation::NUDGE).and_then(|value| {
            let (checksum, at) = value.split_once(' ')?;
            (checksum == short).then(|| Time::parse(at).ok())?
        });
        let due = nudged.is_none_or(|at| self.snapshot.now.since(at) >= NUDGE_AGAIN);
        if due {
            let value = format!("{short} {}", self.snapshot.now);
            self.annotate(&pod.uid, &[(annotation::NUDGE, Some(value))]);
        }
    }
}
