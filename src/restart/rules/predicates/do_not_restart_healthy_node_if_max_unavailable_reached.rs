//! No more nodes down than allowed; what does not serve anyway may be put right.

use super::{Check, Evaluation, Peer, Predicate, no};
use crate::rules::name_list::NameList;

/// A node that serves is stopped only while fewer nodes than `spec.restart.maxUnavailable` are
/// unavailable, and fewer of each of its roles than that role's own limit.
///
/// In place a node that is stopped or started by us counts as unavailable until it is back. A node
/// that does not serve takes nothing away: it waits only for those that are down because of us.
/// Nodes that go together count as one.
pub(super) fn do_not_restart_healthy_node_if_max_unavailable_reached(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    let (budget, field) = (pass.budget(), || "spec.restart.maxUnavailable".to_owned());
    if !candidate.healthy {
        if pass.has_room() {
            return Ok(());
        }
        return limit(pass.under_way().len(), &pass.under_way_in_words(), budget, field);
    }
    let census = &pass.census;
    limit(census.unavailable.count, &census.unavailable, budget, field)?;
    let roles = candidate.node.map(|node| &node.roles);
    for (limited, share) in &pass.policy.max_unavailable_of_role {
        // Nodes with one of the two names of the same role are counted together.
        let names: &[&str] = match limited.as_str() {
            "master" | "cluster_manager" => &["master", "cluster_manager"],
            other => &[other],
        };
        if !names.iter().any(|name| roles.is_some_and(|roles| roles.contains(*name))) {
            continue;
        }
        let tallies = names.iter().filter_map(|name| census.roles.get(name));
        let (all, unavailable) =
            tallies.fold((0, 0), |(all, down), tally| (all + tally.all, down + tally.unavailable));
        // A node whose roles nobody knows may be one of them.
        let down = unavailable + census.unlisted.count;
        limit(down, &census.unavailable, share.of(all), || {
            format!("spec.restart.maxUnavailableOfRole of {limited}")
        })?;
    }
    Ok(())
}

/// Passes while fewer than `budget` are down, which are among `names`.
fn limit(down: usize, names: &NameList<'_>, budget: usize, field: impl Fn() -> String) -> Check {
    if down < budget {
        return Ok(());
    }
    let are = if down == 1 { "node is" } else { "nodes are" };
    no(
        Predicate::MaxUnavailable,
        format!(
            "{down} {are} down or on the way down ({names}) and {} allows {budget}: waits until \
             fewer are; a node that does not come back by itself has to be repaired, or a higher \
             limit set",
            field()
        ),
    )
}
