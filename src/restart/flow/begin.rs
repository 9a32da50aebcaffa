//! A member takes its slot: everything its turn needs is written down at once.

use super::member::GAP;
use crate::restart::planner::Planner;
use crate::restart::{Code, Manager, Pod, Reason, Refusal, Restart, Step};

impl Planner<'_> {
    /// Writes down both sequences, the checksum expected, the process that must be gone, and what
    /// will have to be undone.
    pub(super) fn begin(
        &mut self,
        restart: &Restart,
        index: usize,
        pod: &Pod,
        manager: &Manager,
    ) -> Result<(), Refusal> {
        let engine = self.view.engine()?;
        let expected = Self::expected_now(pod, manager)?;
        let Some(member) = restart.members.get(index).filter(|one| one.pod_uid == pod.uid) else {
            let sentence = "it is no member of this restart".into();
            return Err(Refusal { code: Code::NotItsTurn, sentence });
        };
        let node = self.view.node(&pod.node);
        let mut begun = member.clone();
        begun.step = Step::Restarting;
        begun.since = self.snapshot.now;
        begun.stop = manager.sequence + GAP;
        begun.start = begun.stop + GAP;
        begun.expected = expected;
        begun.ephemeral = node.map(|node| node.ephemeral_id.clone());
        begun.node_id = node.map(|node| node.id.clone());
        begun.master = node.is_some_and(crate::restart::Node::is_master_eligible);
        self.owe_protection(&restart.request.id, restart.request.strategy, &begun, engine)?;
        if self.ledger.cluster_uuid.is_none() {
            self.ledger.to_mut().cluster_uuid = Some(engine.cluster_uuid.clone());
        }
        let reason =
            if begun.master { Reason::MasterRestartStarted } else { Reason::NodeRestartStarted };
        self.tell(Some(&pod.uid), reason, format!("Restarting {} in place", pod.node));
        self.set_member(index, begun);
        Ok(())
    }
}
