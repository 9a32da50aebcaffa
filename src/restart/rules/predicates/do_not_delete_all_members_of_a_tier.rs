//! At least one node of every role stays.

use super::{Check, Evaluation, Peer, Predicate, block, disable_hint};

/// A node that serves is stopped only if for each of its roles another node with that role serves and
/// stays. A role that only one node has does not block. Other rules cover the roles of masters.
///
/// In place the roles of a node that is not in the cluster are unknown, unless we have stopped it: it
/// may have any role.
pub(super) fn do_not_delete_all_members_of_a_tier(
    evaluation: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
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
                disable_hint(Predicate::WholeTier)
            ),
        );
    }
    Ok(())
}

const OF_MASTERS: [&str; 3] = ["master", "cluster_manager", "voting_only"];
