//! Protecting the shards of a node that goes: by the allocation setting, with a marker beside it
//! in the same request, or by the engine's own node-shutdown record.

use super::{Move, wait};
use crate::planner::Planner;
use crate::{
    Action, Allocation, AllocationBefore, AllocationDebt, Blocker, Code, Engine, Marker, Member,
    Reason, RecordDebt, Restart, Strategy,
};

/// What we set: primaries still find a place, replicas stay where they are.
const OURS: &str = "primaries";

/// How much a value allows; what we do not know counts as everything.
fn looseness(value: Option<&str>) -> u8 {
    match value {
        Some("none") => 0,
        Some("new_primaries") => 1,
        Some(OURS) => 2,
        Some(_) | None => 3,
    }
}

/// The value in force.
fn in_force(setting: &AllocationBefore) -> Option<&str> {
    setting.transient.as_deref().or(setting.persistent.as_deref())
}

/// Whether replicas may be allocated.
pub(crate) fn is_tight(allocation: &Allocation) -> bool {
    looseness(in_force(&allocation.setting)) <= looseness(Some(OURS))
}

/// What to set back to. What somebody else has set beside ours, or over it, stands.
fn set_back(now: &AllocationBefore, before: &AllocationBefore) -> AllocationBefore {
    let ours = |value: &Option<String>| value.as_deref() == Some(OURS);
    let persistent = if ours(&now.persistent) { &before.persistent } else { &now.persistent };
    // The transient one is only touched where there was one.
    let transient = if before.transient.is_some() && ours(&now.transient) {
        &before.transient
    } else {
        &now.transient
    };
    AllocationBefore { persistent: persistent.clone(), transient: transient.clone() }
}

impl Planner<'_> {
    /// Writes down, with the member's slot, what will have to be undone.
    pub(super) fn owe_protection(
        &mut self,
        restart_id: &str,
        strategy: Strategy,
        member: &Member,
        engine: &Engine,
    ) -> Result<(), Blocker> {
        let records = engine.records.as_ref().map_err(Blocker::engine_unreachable)?;
        if let (Some(_), Some(node_id), Strategy::Immediate | Strategy::Rolling) =
            (records, &member.node_id, strategy)
        {
            self.ledger.to_mut().debts.records.push(RecordDebt {
                node_id: node_id.clone(),
                node: member.node.clone(),
                pod_uid: member.pod_uid.clone(),
                restart: restart_id.to_owned(),
            });
            return Ok(());
        }
        let allocation = engine.allocation.as_ref().map_err(Blocker::engine_unreachable)?;
        if let Some(debt) = &mut self.ledger.to_mut().debts.allocation {
            debt.holders.push(member.pod_uid.clone());
            return Ok(());
        }
        self.ledger.to_mut().debts.allocation =
            self.allocation_debt(restart_id, allocation, vec![member.pod_uid.clone()])?;
        Ok(())
    }

    /// What will have to be set back; nothing where allocation is as tight as we want it.
    pub(super) fn allocation_debt(
        &self,
        restart_id: &str,
        allocation: &Allocation,
        holders: Vec<String>,
    ) -> Result<Option<AllocationDebt>, Blocker> {
        if allocation.marker.is_none() && is_tight(allocation) {
            return Ok(None);
        }
        let before = match &allocation.marker {
            Some(marker) if !self.is_ours(marker) => {
                let message = format!(
                    "the SearchCluster {} restarts nodes of this engine now",
                    marker.cluster
                );
                return Err(Blocker { code: Code::ForeignController, message });
            }
            Some(marker) => marker.before.clone(),
            None => allocation.setting.clone(),
        };
        Ok(Some(AllocationDebt { restart: restart_id.to_owned(), before, holders }))
    }

    /// Before a stop: `None` once the engine is prepared for it.
    pub(super) fn prepare_engine(&mut self, restart: &Restart, member: &Member) -> Option<Move> {
        if let Some(turn) = self.announce(restart, member) {
            return Some(turn);
        }
        self.tighten(member)
    }

    /// Tightens allocation if that is owed for this member.
    pub(super) fn tighten(&mut self, member: &Member) -> Option<Move> {
        let debt = self.ledger.debts.allocation.as_ref()?;
        if !debt.holders.contains(&member.pod_uid) {
            return None;
        }
        let ours = Marker {
            cluster: self.snapshot.cluster.name.clone(),
            restart: debt.restart.clone(),
            before: debt.before.clone(),
        };
        let allocation = match self.view.allocation() {
            Ok(allocation) => allocation,
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        match &allocation.marker {
            Some(marker) if !self.is_ours(marker) => Some(wait(
                Code::ForeignController,
                format!("the SearchCluster {} restarts nodes of this engine now", marker.cluster),
            )),
            Some(marker) if marker.restart != ours.restart => Some(wait(
                Code::ForeignController,
                format!("allocation carries the mark of another restart ({})", marker.restart),
            )),
            Some(_) if is_tight(allocation) => None,
            Some(_) => {
                let message = format!(
                    "somebody set cluster.routing.allocation.enable back to {} while we hold it at \
                     {OURS}; pause the other controller (ECK: eck.k8s.elastic.co/managed=false on \
                     the Elasticsearch resource)",
                    in_force(&allocation.setting).unwrap_or("its default")
                );
                self.tell(None, Reason::ForeignController, message.clone());
                Some(wait(Code::ForeignController, message))
            }
            None => {
                self.act(Action::TightenAllocation { value: OURS.into(), marker: ours });
                Some(wait(Code::Preparing, "allocation is being limited to primaries"))
            }
        }
    }

    /// After the proof, or at the end of the way back: `None` once nothing of ours is left at the
    /// engine for this member.
    pub(super) fn clean_up(&mut self, member: &Member) -> Option<Move> {
        if let Some(turn) = self.vote_again(member) {
            return Some(turn);
        }
        if let Some(turn) = self.withdraw(member) {
            return Some(turn);
        }
        let debt = self.ledger.debts.allocation.as_ref()?;
        if debt.holders.iter().any(|holder| *holder != member.pod_uid) {
            return None;
        }
        match self.view.allocation() {
            Err(refusal) => Some(Move::Wait(refusal)),
            Ok(allocation) => self.restore(allocation).then(|| {
                wait(Code::RestoringAllocation, "allocation is being set back to what it was")
            }),
        }
    }

    /// Whether a marker was set for this SearchCluster.
    fn is_ours(&self, marker: &Marker) -> bool {
        marker.cluster == self.snapshot.cluster.name
    }

    /// FailedSets allocation back if it is ours; says whether there was something to do.
    pub(super) fn restore(&mut self, allocation: &Allocation) -> bool {
        let Some(marker) = allocation.marker.as_ref().filter(|marker| self.is_ours(marker)) else {
            return false;
        };
        let before = set_back(&allocation.setting, &marker.before);
        self.act(Action::RestoreAllocation { before });
        true
    }
}
