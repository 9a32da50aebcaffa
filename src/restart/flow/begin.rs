//! A member takes its slot: everything its turn needs is written down at once.

use super::member::GAP;
use crate::planner::Planner;
use crate::rules::StopImpact;
use crate::{Blocker, Code, Manager, Member, Pod, Reason, Restart, Step};

impl Planner<'_> {
    /// Writes down both sequences, the checksum expected, the process that must be gone, and what
    /// will have to be undone. For one that is `lost` with its set the engine need not answer: then
    /// there is no process to be gone, and nothing is asked of the engine that would be undone.
    pub(crate) fn begin(
        &mut self,
        restart: &Restart,
        index: usize,
        pod: &Pod,
        manager: &Manager,
        terms: &StopImpact,
    ) -> Result<(), Blocker> {
        let engine = match self.view.engine() {
            Ok(engine) => Some(engine),
            Err(_) if terms.whole_set_failed => None,
            Err(refusal) => return Err(refusal),
        };
        let expected = Self::expected_now(pod, manager)?;
        let Some(member) = restart.members.get(index).filter(|one| one.pod_uid == pod.uid) else {
            let message = "it is no member of this restart".into();
            return Err(Blocker { code: Code::NotItsTurn, message });
        };
        let node = self.view.node(&pod.node);
        let mut begun = member.clone();
        begun.step = Step::Restarting;
        begun.since = self.snapshot.now;
        begun.stop_sequence = manager.sequence + GAP;
        begun.start_sequence = begun.stop_sequence + GAP;
        begun.expected = expected;
        begun.ephemeral_id = node.map(|node| node.ephemeral_id.clone());
        begun.node_id = node.map(|node| node.id.clone());
        begun.master_eligible = node.is_some_and(crate::Node::is_master_eligible);
        // What may be refused comes before what is written down.
        let hands_over = self.hands_over(terms)?;
        if let Some(engine) = engine {
            match self.owe_protection(&restart.request.id, restart.request.strategy, &begun, engine)
            {
                Err(refusal)
                    if terms.whole_set_failed && refusal.code == Code::EngineUnreachable => {}
                owed => owed?,
            }
            if hands_over {
                self.owe_vote(&restart.request.id, &begun);
            }
            if self.ledger.cluster_uuid.is_none() {
                self.ledger.to_mut().cluster_uuid = Some(engine.cluster_uuid.clone());
            }
        }
        self.tell_begun(&begun, &terms.describe(hands_over));
        self.set_member(index, begun);
        if let Some(restart) = &mut self.ledger.to_mut().restart {
            restart.began.get_or_insert(self.snapshot.now);
        }
        Ok(())
    }

    /// Says that a node's turn has come, and on what terms.
    pub(super) fn tell_begun(&mut self, member: &Member, terms: &str) {
        let reason = if member.master_eligible {
            Reason::MasterRestartStarted
        } else {
            Reason::NodeRestartStarted
        };
        let message = format!("Restarting {} in place{terms}", member.node);
        self.tell(Some(&member.pod_uid), reason, message);
    }
}
