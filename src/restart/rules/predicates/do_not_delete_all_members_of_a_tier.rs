//! Somebody of every role stays.

use super::{Check, Evaluation, Peer, Predicate, no, or_else};

/// A node that serves is stopped only if for each of its roles another node that has it serves and
/// stays. A role that only one node has cannot be kept, and does not hold it back; roles of masters
/// are the matter of the rules for masters.
///
/// In place no labels tell the roles of a node that is not in the cluster: it may have any of them.
pub(super) fn do_not_delete_all_members_of_a_tier(
    pass: &Evaluation<'_>,
    candidate: &Peer<'_>,
) -> Check {
    if !candidate.healthy {
        return Ok(());
    }
    let own = usize::from(!candidate.together);
    let unlisted = &pass.census.unlisted;
    let roles = candidate.node.into_iter().flat_map(|node| &node.roles);
    for role in roles.filter(|role| !OF_MASTERS.contains(&role.as_str())) {
        let tally = pass.census.roles.get(role.as_str()).copied().unwrap_or_default();
        if tally.all + unlisted.count <= 1 || tally.healthy > own {
            continue;
        }
        let unlisted = match unlisted.count {
            0 => String::new(),
            _ => format!(" ({unlisted}, not in the cluster, may have it as well)"),
        };
        let goes = if candidate.together { "and those that go with it are" } else { "is" };
        return no(
            Predicate::WholeTier,
            format!(
                "{} {goes} the last to serve with the role {role}{unlisted}: waits until another \
                 does; {}",
                candidate.name(),
                or_else(Predicate::WholeTier)
            ),
        );
    }
    Ok(())
}

const OF_MASTERS: [&str; 3] = ["master", "cluster_manager", "voting_only"];
