//! Every situation by name, with the expected contents of its plan.

use stayput_restart::{Code, Plan, Policy, Predicate, Snapshot};

use crate::expected::{backs, members, patches, ruled, slots, stops, waits};
use crate::quiet::{at_rest, drifting, kept_stopped, requested};
use crate::restarting::{rolling, shown};
use crate::special::{asked, coordinated_begin, coordinated_end, immediate};
use crate::under_way::{blocked_by_health, blocked_by_shards, to_be_shown, under_way};

/// The snapshot of a cluster with this many nodes.
pub(super) type Situation = fn(usize) -> (Snapshot, Policy);
/// Whether the plan is about the situation that it is named after: an empty plan would be fast for
/// the wrong reason.
pub(super) type Comes = fn(&Plan, usize) -> bool;

pub(super) const SITUATIONS: [(&str, Situation, Comes); 14] = [
    ("idle", |n| (at_rest(n), Policy::default()), |plan, n| waits(plan, Code::Idle) == n),
    ("drifting", drifting, |plan, n| waits(plan, Code::PendingRestart) == n),
    ("requested", requested, |plan, n| slots(plan) == 1 && members(plan) == n),
    ("asked-on-every-pod", asked, |plan, n| members(plan) == n),
    ("next", |n| (shown(rolling(n, 0)), Policy::default()), |plan, _| slots(plan) == 1),
    ("last-but-one", |n| (shown(rolling(n, n - 2)), Policy::default()), |plan, _| slots(plan) == 1),
    ("to-be-shown", to_be_shown, |plan, n| patches(plan) == n),
    ("under-way", under_way, |plan, _| stops(plan) == 1),
    // Higher tiers wait for lower ones because of one rule, the elected master for all others.
    ("blocked-by-health", blocked_by_health, |plan, n| {
        waits(plan, Code::Predicate(Predicate::GreenOrYellow)) > 0 && ruled(plan) == n - 1
    }),
    ("blocked-by-shards", blocked_by_shards, |plan, n| {
        waits(plan, Code::Predicate(Predicate::StartedReplica)) > 0 && ruled(plan) == n - 1
    }),
    ("tenth-kept-stopped", kept_stopped, |plan, n| waits(plan, Code::KeptStopped) == n / 10),
    ("immediate-all", immediate, |plan, n| slots(plan) == n),
    ("coordinated-begin", coordinated_begin, |plan, n| slots(plan) == n),
    ("coordinated-end", coordinated_end, |plan, n| backs(plan) == n),
];
