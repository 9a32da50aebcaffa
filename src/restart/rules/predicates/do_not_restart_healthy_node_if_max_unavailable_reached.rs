//! No more nodes are down than allowed; a node that does not serve may be restarted.

use super::{Check, Evaluation, Peer, Predicate, block};
use crate::rules::name_list::NameList;

/// A node that serves is stopped only while fewer nodes than `spec.restart.maxUnavailable` are
/// unavailable, and fewer of each of its roles than that role's own limit.
///
/// In place a node that we stop or start counts as unavailable until it is back. A node that does not
/// serve makes nothing unavailable: it waits only for nodes that are down because of us. A batch
/// counts as one node.
pub(super) fn do_not_restart_healthy_node_if_max_unavailable_reached(
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
