//! Every change of a ledger that a plan can make.

use std::collections::BTreeSet;

use super::{
    AllocationDebt, Debts, Direction, Ending, ExclusionDebt, HistoryEntry, KeptStopped, Leaving,
    Ledger, Member, MemberStep, NodeResult, Once, OwnKind, RecordDebt, RemovedExclusion, Restart,
    StartDebt, Tried,
};
use crate::index::NameSet;
use crate::{IgnoredChanges, KnownConfigs, Request, Time};

/// One change of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LedgerChange {
    /// Times that deadlines count from, and that are later than `latest`, become the present.
    CorrectTimes {
        latest: Time,
        now: Time,
    },
    /// Moves times with the clock, which has jumped forward by so many milliseconds.
    MoveTimes(u64),
    OpenRestart(Box<Restart>),
    CloseRestart,
    /// Sets the result of the node that ends together with its restart.
    SetLastResult(NodeResult),
    /// Changes the restart under way, if there is one.
    Restart(RestartChange),
    SetQueued(Option<Request>),
    /// Remembers the id of a request, and forgets the oldest but `keep`.
    RememberRequest {
        id: String,
        keep: Option<String>,
    },
    /// Remembers the goal of our last restart of a kind.
    SetTried {
        kind: OwnKind,
        tried: Box<Tried>,
    },
    /// Sets the phase on the SearchCluster that is not carried out again.
    SetKeptPhase(Option<String>),
    /// Sets the phase that was seen on an object of an operator; empty for none.
    SetOperatorPhase {
        object: String,
        phase: String,
    },
    /// Sets the pods with a phase that is older than the status.
    SetOldPhases(BTreeSet<String>),
    /// Sets the time since which pods of a SearchCluster that is being deleted still show an old phase.
    SetStillShown(Time),
    AddHistory(HistoryEntry),
    SetClusterUuid(String),
    SetConfigs(KnownConfigs),
    SetIgnoredChanges(IgnoredChanges),
    /// Forgets all debts, the queued request and the nodes kept stopped: everything that they are about
    /// is gone.
    ForgetDebts,
    AddStartDebt(StartDebt),
    RemoveStartDebt(StartDebt),
    SetAllocationDebt(Option<AllocationDebt>),
    /// Adds the allocation debt, or adds its holders to the debt that is there.
    HoldAllocation(AllocationDebt),
    /// Removes these pods from the holders of allocation. If no pod is left and `is_restored` says that
    /// nothing of ours is set, the debt is gone.
    ReleaseAllocation {
        pod_uids: Vec<String>,
        is_restored: bool,
    },
    /// Transfers the debts of one pod to the pod that replaced it.
    ReplacePod {
        old: String,
        new: String,
    },
    AddRecordDebt(RecordDebt),
    RemoveRecordDebt(RecordDebt),
    SetExclusionDebt(Option<ExclusionDebt>),
    /// Removes the debt for a voting exclusion that no longer exists. A late request may set it again.
    ExclusionRemoved {
        node: String,
        at: Time,
    },
    /// Sets what is owed for nodes that leave. A voting exclusion that is not owed any more was removed; a late
    /// request may set it again.
    SetLeaving {
        leaving: Leaving,
        at: Time,
    },
    AddKeptStopped(KeptStopped),
    /// Adds the entry of a node kept stopped, or replaces that of the same pod.
    SetKeptStopped(KeptStopped),
    RemoveKeptStopped(KeptStopped),
}

/// One change of the restart under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestartChange {
    /// Ends the restart; a later ending does not replace this one.
    EndWith(Ending),
    SetDirection(Direction),
    /// Records that a coordinated restart has limited allocation and flushed; it does this only once.
    PrepareOnce,
    /// Makes a coordinated restart limit allocation and flush again: it gives all slots back.
    PrepareAgain,
    /// Freezes the checksums of a coordinated restart that the ledger has now, and lets all members
    /// start on them.
    Freeze(Time),
    /// Records that the first member got its slot.
    Begin(Time),
    /// Sets the time since which the restart is stuck.
    SetStuck(Option<Time>),
    AddMember(Box<Member>),
    SetMember {
        index: usize,
        member: Box<Member>,
    },
}

impl From<RestartChange> for LedgerChange {
    fn from(change: RestartChange) -> Self {
        Self::Restart(change)
    }
}

impl LedgerChange {
    /// Makes the change.
    pub(crate) fn apply(self, ledger: &mut Ledger) {
        match self {
            Self::CorrectTimes { latest, now } => ledger.correct_times(latest, now),
            Self::MoveTimes(jumped) => ledger.move_times(jumped),
            Self::OpenRestart(restart) => ledger.restart = Some(*restart),
            Self::CloseRestart => ledger.restart = None,
            Self::SetLastResult(result) => ledger.last_result = Some(result),
            Self::Restart(change) => {
                if let Some(restart) = &mut ledger.restart {
                    change.apply(restart);
                }
            }
            Self::SetQueued(queued) => ledger.queued = queued,
            Self::RememberRequest { id, keep } => ledger.remember(&id, keep.as_deref()),
            Self::SetTried { kind: OwnKind::Configs, tried } => ledger.tried_configs = Some(tried),
            Self::SetTried { kind: OwnKind::Templates, tried } => {
                ledger.tried_templates = Some(tried);
            }
            Self::SetKeptPhase(phase) => ledger.kept_phase = phase,
            Self::SetOperatorPhase { object, phase } => {
                ledger.operator_phases.insert(object, phase);
            }
            Self::SetOldPhases(uids) => ledger.old_phases = uids,
            Self::SetStillShown(since) => ledger.still_shown_since = Some(since),
            Self::AddHistory(entry) => ledger.record(entry),
            Self::SetClusterUuid(uuid) => ledger.cluster_uuid = Some(uuid),
            Self::SetConfigs(configs) => ledger.configs = configs,
            Self::SetIgnoredChanges(changes) => ledger.ignored_changes = changes,
            Self::ForgetDebts => {
                ledger.debts = Debts::default();
                ledger.queued = None;
                ledger.kept_stopped.clear();
            }
            Self::AddStartDebt(debt) => ledger.debts.start.push(debt),
            Self::RemoveStartDebt(debt) => ledger.debts.start.retain(|one| *one != debt),
            Self::SetAllocationDebt(debt) => ledger.debts.allocation = debt,
            Self::HoldAllocation(debt) => hold_allocation(ledger, debt),
            Self::ReleaseAllocation { pod_uids, is_restored } => {
                release_allocation(ledger, &pod_uids, is_restored);
            }
            Self::ReplacePod { old, new } => replace_pod(ledger, &old, &new),
            Self::AddRecordDebt(debt) => ledger.debts.records.push(debt),
            Self::RemoveRecordDebt(debt) => ledger.debts.records.retain(|one| *one != debt),
            Self::SetExclusionDebt(debt) => ledger.debts.exclusion = debt,
            Self::ExclusionRemoved { node, at } => {
                ledger.debts.exclusion = None;
                remember_removed(ledger, node, at);
            }
            Self::SetLeaving { leaving, at } => {
                let before = std::mem::replace(&mut ledger.debts.leaving, leaving);
                if let (Some(node), None) = (before.voter, &ledger.debts.leaving.voter) {
                    remember_removed(ledger, node, at);
                }
            }
            Self::AddKeptStopped(kept) => ledger.kept_stopped.push(kept),
            Self::SetKeptStopped(kept) => {
                let mut entries = ledger.kept_stopped.iter_mut();
                if let Some(entry) = entries.rfind(|one| one.pod_uid == kept.pod_uid) {
                    *entry = kept;
                }
            }
            Self::RemoveKeptStopped(kept) => ledger.kept_stopped.retain(|one| *one != kept),
        }
    }
}

impl RestartChange {
    fn apply(self, restart: &mut Restart) {
        match self {
            Self::EndWith(ending) => {
                restart.ending.get_or_insert(ending);
            }
            Self::SetDirection(direction) => restart.direction = direction,
            Self::PrepareOnce => {
                restart.once.allocation = true;
                restart.once.flush = true;
            }
            Self::PrepareAgain => restart.once = Once::default(),
            Self::Freeze(at) => {
                restart.frozen = Some(at);
                let members = restart.members.iter_mut();
                for member in members.filter(|member| member.step != MemberStep::Finished) {
                    member.since = at;
                }
            }
            Self::Begin(at) => {
                restart.began.get_or_insert(at);
            }
            Self::SetStuck(since) => restart.stuck_since = since,
            Self::AddMember(member) => restart.members.push(*member),
            Self::SetMember { index, member } => {
                if let Some(entry) = restart.members.get_mut(index) {
                    *entry = *member;
                }
            }
        }
    }
}

fn hold_allocation(ledger: &mut Ledger, debt: AllocationDebt) {
    match &mut ledger.debts.allocation {
        Some(known) => known.holders.extend(debt.holders),
        none => *none = Some(debt),
    }
}

fn release_allocation(ledger: &mut Ledger, pod_uids: &[String], is_restored: bool) {
    let Some(debt) = &mut ledger.debts.allocation else { return };
    match pod_uids {
        [one] => debt.holders.retain(|holder| holder != one),
        many => {
            let many: NameSet<'_> = many.iter().map(String::as_str).collect();
            debt.holders.retain(|holder| !many.contains(holder.as_str()));
        }
    }
    if debt.holders.is_empty() && is_restored {
        ledger.debts.allocation = None;
    }
}

/// Remembers that the voting exclusion of this node was removed.
fn remember_removed(ledger: &mut Ledger, node: String, at: Time) {
    let removed = &mut ledger.removed_exclusions;
    removed.retain(|one| one.may_come_again(at) && one.node != node);
    removed.push(RemovedExclusion { node, at });
}

fn replace_pod(ledger: &mut Ledger, old: &str, new: &str) {
    let holders = ledger.debts.allocation.iter_mut().flat_map(|debt| &mut debt.holders);
    for holder in holders.filter(|holder| *holder == old) {
        new.clone_into(holder);
    }
    if let Some(debt) = ledger.debts.exclusion.as_mut().filter(|debt| debt.pod_uid == old) {
        new.clone_into(&mut debt.pod_uid);
    }
}
