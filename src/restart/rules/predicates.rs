//! The predicates: one function each, under its name. All but `do_not_interrupt_running_snapshot` are those
//! of nodes-orchestration.md; each of these describes how it differs from the published predicate because the
//! pod stays ("in place"). A predicate checks one candidate against the state of the cluster ([`Evaluation`])
//! and returns a message for people if it blocks.

use std::fmt::{self, Display};

use crate::changes::{Check, refuse};
use crate::rules::evaluation::Evaluation;
use crate::rules::node_counts::Peer;
use crate::rules::{NameList, last_resort, more_shards};
use crate::snapshot::namespace_and_name;
use crate::{Blocker, Code, Color, Predicate, annotation};

/// Evaluates one predicate, unless it is disabled.
pub(crate) fn check(
    predicate: Predicate,
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if evaluation.disabled.contains(predicate) {
        return Ok(());
    }
    let rule = match predicate {
        Predicate::DataTier => data_tier_with_higher_priority_must_be_upgraded_first,
        Predicate::MaxUnavailable => do_not_restart_healthy_node_if_max_unavailable_reached,
        Predicate::Terminating => skip_already_terminating_pods,
        Predicate::GreenOrYellow => only_restart_healthy_node_if_green_or_yellow,
        Predicate::Yellow => if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas,
        Predicate::StartedReplica => require_started_replica,
        Predicate::OneMaster => one_master_at_a_time,
        Predicate::LastMaster => {
            do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded
        }
        Predicate::SameShards => do_not_delete_pods_with_same_shards,
        Predicate::WholeTier => do_not_delete_all_members_of_a_tier,
        Predicate::RunningSnapshot => do_not_interrupt_running_snapshot,
    };
    rule(evaluation, candidate)
}

/// The end of a message that says "waits": advice in case it waits forever. `cluster` is `namespace/name`.
fn disable_hint(cluster: &str, predicate: Predicate) -> impl Display {
    fmt::from_fn(move |f| {
        let (namespace, name) = namespace_and_name(cluster);
        write!(
            f,
            "if that never happens, repair what it waits for; as a last resort, disable the rule: \
             cancel this restart and request one by `kubectl stayput -n {namespace} restart {name} \
             --skip-rule {}`; for all stops, write its name into the annotation {}",
            predicate.name(),
            annotation::DISABLE
        )
    })
}

pub(crate) fn block(predicate: Predicate, message: impl Into<String>) -> Check {
    refuse(Code::Predicate(predicate), message)
}

/// The frozen tier goes first, then the cold, warm and hot tiers, so that data can move on through
/// the tiers while their nodes run on different configs.
///
/// In place no version separates old from new nodes, so a node waits for those that are still to be
/// restarted. A node that does not serve moves no data and does not wait.
fn data_tier_with_higher_priority_must_be_upgraded_first(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let Some(tiers) = candidate.tiers.filter(|_| candidate.is_healthy) else {
        return Ok(());
    };
    let mut before = NameList::default();
    for (other, nodes) in &evaluation.counts.requested_tiers {
        if tiers.wait_for(*other) {
            before.extend(nodes);
        }
    }
    if before.count == 0 {
        return Ok(());
    }
    block(
        Predicate::DataTier,
        format!(
            "{} waits for {before}: data tiers go in the order frozen, cold, warm, hot, so that \
             data can move to the next tier; {}",
            candidate.name(),
            disable_hint(evaluation.cluster, Predicate::DataTier)
        ),
    )
}

/// A node that serves is stopped only if for each of its roles another node with that role serves and
/// stays. A role that only one node has does not block. Other rules cover the roles of masters.
///
/// In place the roles of a node that is not in the cluster are unknown, unless we have stopped it: it
/// may have any role.
fn do_not_delete_all_members_of_a_tier(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.is_healthy {
        return Ok(());
    }
    let own = usize::from(!candidate.is_in_batch);
    let unlisted = &evaluation.counts.unlisted;
    let roles = candidate.roles.into_iter().flatten();
    for role in roles.filter(|role| !OF_MASTERS.contains(&role.as_str())) {
        let role_count = evaluation.counts.roles.get(role.as_str()).copied().unwrap_or_default();
        if role_count.all + unlisted.count <= 1 || role_count.healthy > own {
            continue;
        }
        let unlisted = match unlisted.count {
            0 => String::new(),
            _ => format!(" ({unlisted}, not in the cluster, may have it, too)"),
        };
        let goes = if candidate.is_in_batch { "and the nodes stopped with it are" } else { "is" };
        return block(
            Predicate::WholeTier,
            format!(
                "{} {goes} the last to serve with the role {role}{unlisted}: waits until another node \
                 does; {}",
                candidate.name(),
                disable_hint(evaluation.cluster, Predicate::WholeTier)
            ),
        );
    }
    Ok(())
}

const OF_MASTERS: [&str; 3] = ["master", "cluster_manager", "voting_only"];

/// The last master-eligible node to be restarted waits until all other nodes are done, so that the
/// cluster keeps a master that was not restarted as long as possible.
///
/// In place a node that does not serve does not wait: if it is the only one, the others may be
/// waiting for it.
fn do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let own = usize::from(candidate.is_requested && !candidate.is_in_batch);
    let others = &evaluation.counts.requested_others;
    let is_last =
        candidate.is_master && candidate.is_healthy && evaluation.counts.requested_masters <= own;
    if !is_last || others.count == 0 {
        return Ok(());
    }
    block(
        Predicate::LastMaster,
        format!(
            "{} is the last master-eligible node to be restarted and goes after all others: waits \
             for {others}; {}",
            candidate.name(),
            disable_hint(evaluation.cluster, Predicate::LastMaster)
        ),
    )
}

/// A node is not stopped while another node under way holds a copy of one of its shards.
///
/// In place this includes nodes whose slot was taken earlier. Nodes of one batch may share shards, as
/// long as copies stay elsewhere: `require_started_replica` checks that.
fn do_not_delete_pods_with_same_shards(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.under_way().is_empty() {
        return Ok(());
    }
    let shared = evaluation
        .copies()
        .shared(candidate.name(), evaluation.under_way())
        .map_err(Blocker::engine_unreachable)?;
    match shared {
        None => Ok(()),
        Some((shard, other)) => block(
            Predicate::SameShards,
            format!(
                "{} and {other} both hold {shard}, and {other} is being restarted: waits until it is \
                 back",
                candidate.name()
            ),
        ),
    }
}

/// Longest wait for a snapshot, counted from its beginning, in milliseconds: the snapshot may hang, and a
/// node that can never be stopped is the greater risk.
const LONGEST_SNAPSHOT: u64 = 6 * 60 * 60 * 1000;

/// A node that serves waits until the engine has read the data of its shards that the snapshot needs. A stop
/// would end the snapshot as `PARTIAL`: those shards would be missing in it.
///
/// Shards of the snapshot that are on other nodes, or are read already, do not count.
fn do_not_interrupt_running_snapshot(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    let Some(node) = candidate.node.filter(|_| candidate.serves) else { return Ok(()) };
    let Some(running) = &node.snapshot else { return Ok(()) };
    let until = running.since.plus(LONGEST_SNAPSHOT);
    if until <= evaluation.now {
        return Ok(());
    }
    let shards = match running.shards {
        1 => "1 shard".to_owned(),
        many => format!("{many} shards"),
    };
    block(
        Predicate::RunningSnapshot,
        format!(
            "the snapshot {} is being taken of {shards} on {}, and would lack them (PARTIAL): waits \
             until they are read, at most until {until}; a request with skipRules (--skip-rule {}) \
             does not wait",
            running.name,
            candidate.name(),
            Predicate::RunningSnapshot.name(),
        ),
    )
}

/// A node that serves is stopped only while fewer nodes than `spec.restart.maxUnavailable` are
/// unavailable, and fewer of each of its roles than that role's own limit.
///
/// In place a node that we stop or start counts as unavailable until it is back. A node that does not
/// serve makes nothing unavailable: it waits only for nodes that are down because of us. A batch
/// counts as one node.
fn do_not_restart_healthy_node_if_max_unavailable_reached(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let (budget, field) = (evaluation.budget(), || "spec.restart.maxUnavailable".to_owned());
    if !candidate.is_healthy {
        if evaluation.has_free_slot() {
            return Ok(());
        }
        return limit(evaluation.under_way().len(), &evaluation.under_way_names(), budget, field);
    }
    let counts = &evaluation.counts;
    limit(counts.unavailable.count, &counts.unavailable, budget, field)?;
    for (limited, share) in &evaluation.policy.max_unavailable_of_role {
        // Two names of the same role are counted together.
        let names: &[&str] = match limited.as_str() {
            "master" | "cluster_manager" => &["master", "cluster_manager"],
            other => &[other],
        };
        if !names.iter().any(|name| candidate.roles.is_some_and(|roles| roles.contains(*name))) {
            continue;
        }
        let role_counts = names.iter().filter_map(|name| counts.roles.get(name));
        let (all, unavailable) = role_counts.fold((0, 0), |(all, down), role_count| {
            (all + role_count.all, down + role_count.unavailable)
        });
        // A node whose roles are unknown may have this role.
        let down = unavailable + counts.unlisted.count;
        limit(down, &counts.unavailable, share.of(all), || {
            format!("spec.restart.maxUnavailableOfRole of {limited}")
        })?;
    }
    Ok(())
}

/// Passes while fewer than `budget` nodes are down; `names` includes them.
fn limit(down: usize, names: &NameList<'_>, budget: usize, field: impl Fn() -> String) -> Check {
    if down < budget {
        return Ok(());
    }
    let are = if down == 1 { "node is" } else { "nodes are" };
    block(
        Predicate::MaxUnavailable,
        format!(
            "{down} {are} down or being stopped ({names}) and {} allows {budget}: waits until fewer \
             are; repair a node that does not come back by itself, or set a higher limit",
            field()
        ),
    )
}

/// In a yellow cluster a node that serves is restarted only if waiting would not help. Either it runs
/// an older version than others, so that replicas cannot be allocated to it, and no shard is moving or
/// waits for its node.
/// Or the cluster is settled: nothing is moving, and no node is missing.
///
/// In place the versions of the running nodes are compared, and *settled* yellow passes, where the published
/// predicate would wait forever. A cluster of one node is never better than yellow.
fn if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.is_healthy {
        return Ok(());
    }
    let health = evaluation.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    if health.color != Color::Yellow || evaluation.is_alone() {
        return Ok(());
    }
    // A delayed copy waits for a node that may be back at any moment.
    let waits = health.initializing + health.relocating + health.delayed + health.in_flight_fetch;
    if !health.timed_out && waits == 0 && evaluation.is_behind(candidate) {
        return Ok(());
    }
    evaluation.settled.check().map_err(|blocker| {
        let message = format!(
            "{} is not stopped: {}; {}",
            candidate.name(),
            blocker.message,
            disable_hint(evaluation.cluster, Predicate::Yellow)
        );
        Blocker { message, ..blocker }
    })
}

/// A master-eligible node is restarted only while no other one is, and, if it serves, only while all
/// others serve. This includes `voting_only` nodes: a majority needs them.
///
/// In place a node keeps its roles. Master-eligible nodes of one batch count as one; `quorum` checks
/// that enough of them stay.
fn one_master_at_a_time(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.is_master {
        return Ok(());
    }
    let counts = &evaluation.counts;
    let (restarting, missing) = (&counts.masters_under_way, &counts.missing_masters);
    if restarting.count > 0 {
        return wait_for_masters(
            candidate,
            &format!("{restarting} {} being restarted", restarting.or("is", "are")),
        );
    }
    if !candidate.is_healthy {
        return Ok(());
    }
    if missing.count > 0 {
        return wait_for_masters(
            candidate,
            &format!("{missing} {} not serve", missing.or("does", "do")),
        );
    }
    // A voter that is not in the cluster may be one of the nodes whose roles are unknown.
    let voters = evaluation.missing_voters().min(counts.unlisted.count);
    if voters > 0 {
        let message = format!(
            "{voters} voting nodes are not in the cluster, and {} may be one of them",
            counts.unlisted
        );
        return wait_for_masters(candidate, &message);
    }
    Ok(())
}

fn wait_for_masters(candidate: &Peer<'_>, reason: &str) -> Check {
    block(
        Predicate::OneMaster,
        format!(
            "{} is not stopped: one master-eligible node goes at a time, while all others serve, \
             and {reason}: waits until all serve; repair a node that does not come back by itself",
            candidate.name()
        ),
    )
}

/// A node that serves is restarted only while the cluster's health is green or yellow, never while it
/// is red or unknown. A node that does not serve may be the cause of red.
fn only_restart_healthy_node_if_green_or_yellow(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.is_healthy {
        return Ok(());
    }
    let health = evaluation.engine.health.as_ref().map_err(Blocker::engine_unreachable)?;
    let state = match health.color {
        Color::Green | Color::Yellow => return Ok(()),
        Color::Red => format!(
            "the cluster is red, a primary is missing ({} shard copies are unassigned; GET \
             _cluster/allocation/explain shows the reason)",
            health.unassigned
        ),
        Color::Unknown => {
            "the health of the cluster is neither green nor yellow nor red".to_owned()
        }
    };
    block(
        Predicate::GreenOrYellow,
        format!(
            "{} is not stopped: {state}: waits until it is green or yellow; {}",
            candidate.name(),
            disable_hint(evaluation.cluster, Predicate::GreenOrYellow)
        ),
    )
}

/// A node is stopped only if every shard of which it has a started copy has another started copy on a
/// node that stays. Without one the cluster would turn red.
///
/// Stricter than published: replicas count as primaries do, also in a green cluster, because only the
/// copies that would be left count. `unreplicated_index` checks indices without replicas.
fn require_started_replica(evaluation: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if evaluation.allows_outage(candidate) {
        return Ok(());
    }
    let lost = evaluation.copies().lost(candidate.name()).map_err(|unknown| Blocker {
        message: format!(
            "{} is not stopped: the shards it holds are unknown: {}",
            candidate.name(),
            unknown.message
        ),
        ..Blocker::engine_unreachable(unknown)
    })?;
    let Some(shard) = lost.first else { return Ok(()) };
    let name = candidate.name();
    let last_resort = last_resort(evaluation.cluster);
    let more = more_shards(lost.number);
    block(
        Predicate::StartedReplica,
        if candidate.is_in_batch {
            format!(
                "{name} and the nodes stopped with it hold the last started copies of {shard}{more}: \
                 waits until another copy is started on a node that stays up; {WHY_NO_COPY}; \
                 {last_resort}"
            )
        } else {
            format!(
                "{name} holds the last started copy of {shard}{more}: waits until another copy is \
                 started on a node that stays up; {WHY_NO_COPY}; {last_resort}"
            )
        },
    )
}

const WHY_NO_COPY: &str = "GET _cluster/allocation/explain says why there is none";

/// A pod that is being deleted is left alone: the pod that replaces it starts on the new config.
fn skip_already_terminating_pods(_: &Evaluation<'_>, candidate: &Peer<'_>) -> Check {
    if !candidate.pod.terminating {
        return Ok(());
    }
    let message = format!("the pod {} is being deleted", candidate.pod.name);
    block(Predicate::Terminating, message)
}
