//! The engine's own record of a node that will be back soon, where it has such a thing.

use super::{Move, wait};
use crate::planner::Planner;
use crate::{Action, Blocker, Code, Member, Record, RecordDebt, Restart};

impl<'a> Planner<'a> {
    /// The record owed for a member, if there is one.
    fn record_debt(&self, member: &Member) -> Option<RecordDebt> {
        let mut records = self.ledger.debts.records.iter();
        records.find(|debt| debt.pod_uid == member.pod_uid).cloned()
    }

    /// The records the engine has, where it has any.
    pub(super) fn records(&self) -> Result<&'a [Record], Blocker> {
        let records = self.view.engine()?.records.as_ref();
        let records = records.map_err(Blocker::engine_unreachable)?;
        Ok(records.as_deref().unwrap_or_default())
    }

    /// Before the stop: announces the restart, and waits until the engine has prepared for it.
    pub(super) fn announce(&mut self, restart: &Restart, member: &Member) -> Option<Move> {
        let debt = self.record_debt(member)?;
        let record = match self.records() {
            Ok(records) => records.iter().find(|record| record.node_id == debt.node_id).cloned(),
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        match record {
            None => {
                self.act(Action::PutRecord {
                    node_id: debt.node_id,
                    reason: restart.request.id.clone(),
                });
                Some(wait(Code::Preparing, "its restart is being announced to the engine"))
            }
            Some(record) if record.reason != debt.restart || !record.is_restart => Some(wait(
                Code::ForeignController,
                format!(
                    "the engine already has a shutdown record for this node, by {:?}; whoever put \
                     it there must delete it first",
                    record.reason
                ),
            )),
            Some(record) if record.complete => None,
            Some(_) => Some(wait(Code::Preparing, "the engine prepares for the restart")),
        }
    }

    /// After the proof: deletes the record.
    pub(super) fn withdraw(&mut self, member: &Member) -> Option<Move> {
        let debt = self.record_debt(member)?;
        let ours = match self.records() {
            Ok(records) => records.iter().any(|record| debt.is_about(record)),
            Err(refusal) => return Some(Move::Wait(refusal)),
        };
        if !ours {
            return None;
        }
        self.act(Action::DeleteRecord { node_id: debt.node_id });
        Some(wait(Code::RestoringAllocation, "its shutdown record is being deleted"))
    }
}
