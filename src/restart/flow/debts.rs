//! Paying what is owed, until it is paid.

use super::member::was_refused;
use super::start::is_ending;
use crate::planner::Planner;
use crate::{Action, Code, Manager, Reason, StartDebt};
use stayput_api::{ConfigChoice, Desired, State};

impl Planner<'_> {
    /// The next instalment of every debt.
    pub(super) fn pay_debts(&mut self) {
        for debt in self.ledger.debts.start.clone() {
            self.pay_start(&debt);
        }
        self.pay_allocation();
        self.pay_records();
        self.sweep_records();
        self.pay_exclusion();
    }

    fn pay_start(&mut self, debt: &StartDebt) {
        let uid = debt.pod_uid.as_str();
        let Some(pod) = self.view.pod(uid) else {
            // A list that has another pod of this name knows that ours is gone; one that merely
            // lacks it is believed after a while.
            let replaced = self.view.pods().any(|pod| pod.node == debt.node);
            let long = self.snapshot.now.since(debt.since) >= self.policy.phase_timeout;
            if replaced || long || self.nothing_left() {
                self.strike_start(debt, "its pod is gone");
            } else {
                self.wait_all(
                    Code::Debts,
                    format!("{} is owed a start; its pod is gone", debt.node),
                );
            }
            return;
        };
        if self.is_to_be_stopped(pod) {
            if self.ledger.kept_stopped.iter().any(|fence| fence.pod_uid == debt.pod_uid) {
                return self.strike_start(debt, "it is kept stopped now");
            }
            // Until that is written down, the wish may be taken back.
            return self.wait(uid, Code::KeptStopped, "it is to be kept stopped");
        }
        let manager = match self.view.manager(uid) {
            Ok(manager) => manager,
            Err(refusal) => return self.refused(uid, refusal),
        };
        if manager.sequence > debt.sequence {
            return self.strike_start(debt, "somebody else gave it orders since");
        }
        if manager.sequence < debt.sequence {
            return self.send_start(debt, manager);
        }
        if was_refused(manager, debt.sequence) && debt.config == ConfigChoice::Mounted {
            // There is no other way; the same request is judged afresh.
            self.send_start(debt, manager);
        } else if was_refused(manager, debt.sequence) {
            let again = StartDebt {
                sequence: manager.sequence + 1,
                config: ConfigChoice::Mounted,
                ..debt.clone()
            };
            self.ledger.to_mut().debts.start.retain(|one| one != debt);
            self.ledger.to_mut().debts.start.push(again);
        } else if manager.desired == Desired::Running && manager.durable {
            self.strike_start(debt, "it was told to run");
        } else if manager.desired == Desired::Stopped {
            self.strike_start(debt, "somebody else stopped it");
        } else {
            self.wait(uid, Code::NotDurable, "told to run; its manager has not written it down");
        }
    }

    fn send_start(&mut self, debt: &StartDebt, manager: &Manager) {
        if is_ending(manager.state) || manager.state == State::Stuck {
            return self.wait(&debt.pod_uid, Code::Debts, "it is told to run once it is stopped");
        }
        self.act(Action::Start {
            uid: debt.pod_uid.clone(),
            sequence: debt.sequence,
            checksum: None,
            config: debt.config,
        });
    }

    fn strike_start(&mut self, debt: &StartDebt, why: &str) {
        self.ledger.to_mut().debts.start.retain(|one| one != debt);
        self.tell(
            None,
            Reason::DebtPaid,
            format!("{} is no longer owed a start: {why}", debt.node),
        );
    }

    /// Allocation nobody holds any more; and a marker that belongs to nothing in the ledger, which
    /// a request that arrived late has left.
    fn pay_allocation(&mut self) {
        let debt = &self.ledger.debts.allocation;
        let is_owed = debt.is_some();
        if debt.as_ref().is_some_and(|debt| !debt.holders.is_empty()) {
            return;
        }
        match self.view.allocation() {
            Ok(allocation) => {
                if self.restore(allocation) {
                    return;
                }
                if is_owed {
                    self.ledger.to_mut().debts.allocation = None;
                    self.tell(None, Reason::DebtPaid, "Allocation is as it was");
                }
            }
            Err(_) if self.nothing_left() => {
                if is_owed {
                    self.ledger.to_mut().debts.allocation = None;
                }
            }
            Err(refusal) if is_owed => self
                .wait_all(Code::Debts, format!("allocation must be set back: {}", refusal.message)),
            Err(_) => {}
        }
    }

    /// Records of pods that are under way no longer.
    fn pay_records(&mut self) {
        let due: Vec<_> = self
            .ledger
            .debts
            .records
            .iter()
            .filter(|debt| self.is_let_go(&debt.pod_uid))
            .cloned()
            .collect();
        if due.is_empty() {
            return;
        }
        if self.nothing_left() {
            self.ledger.to_mut().debts.records.clear();
            return;
        }
        let records = match self.records() {
            Ok(records) => records,
            Err(refusal) => return self.wait_all(Code::Debts, refusal.message),
        };
        for debt in due {
            if records.iter().any(|record| debt.is_about(record)) {
                self.act(Action::DeleteRecord { node_id: debt.node_id.clone() });
            } else {
                self.ledger.to_mut().debts.records.retain(|one| *one != debt);
            }
        }
    }

    /// Whether a member with this pod holds a slot.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.ledger.under_way().any(|member| member.pod_uid == uid)
    }

    /// Whether nothing is done about a pod any more that something was held for.
    pub(super) fn is_let_go(&self, uid: &str) -> bool {
        !self.is_under_way(uid) && !self.ledger.debts.start.iter().any(|debt| debt.pod_uid == uid)
    }

    /// A SearchCluster that goes together with its pods owes nobody anything any more.
    pub(super) fn nothing_left(&self) -> bool {
        self.snapshot.cluster.deleting && self.snapshot.pods.is_empty()
    }

    /// Records of ours that nothing in the ledger asks for: a request that arrived late made them.
    fn sweep_records(&mut self) {
        let Ok(engine) = self.view.engine() else { return };
        let Ok(Some(records)) = &engine.records else { return };
        let listed = |id: &str| engine.nodes.iter().any(|node| node.id == id);
        for record in records {
            let debts = &self.ledger.debts.records;
            let owed = debts.iter().any(|debt| debt.node_id == record.node_id);
            let ours = record.is_restart && self.ledger.has_handled(&record.reason);
            if ours && !owed && listed(&record.node_id) {
                self.act(Action::DeleteRecord { node_id: record.node_id.clone() });
            }
        }
    }
}
