//! Unknown names in the policy: they are reported, and block nothing.

use std::collections::BTreeSet;

use crate::changes::Changes;
use crate::context::Context;
use crate::{Ledger, Reason};

/// Reports names in the policy that are unknown. The user may expect that a rule is disabled that
/// is still evaluated, or that a limit applies that limits nothing.
pub(crate) fn report_unknown_names(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    if let Some(message) = context.policy.disabled.unknown() {
        changes.event(None, Reason::InputIgnored, message);
    }
    // Only once, when a restart begins: later a role may be missing because its node is down.
    let begins = context.snapshot.ledger.restart.is_none() && ledger.restart.is_some();
    if begins && let Some(message) = unknown_roles(context) {
        changes.event(None, Reason::InputIgnored, message);
    }
    changes
}

/// Message about limits for roles that no node has. A node that is not listed, or lists no roles, may have
/// any: then nothing is reported.
fn unknown_roles(context: &Context<'_>) -> Option<String> {
    let limits = &context.policy.max_unavailable_of_role;
    if limits.is_empty() {
        return None;
    }
    let nodes: Option<Vec<_>> =
        context.index.pods().map(|pod| context.index.node(&pod.node)).collect();
    let nodes = nodes?;
    if nodes.iter().any(|node| node.roles_unknown) {
        return None;
    }
    let roles: BTreeSet<&str> =
        nodes.iter().flat_map(|node| &node.roles).map(String::as_str).collect();
    let is_known = |role: &str| match role {
        "master" | "cluster_manager" => {
            roles.contains("master") || roles.contains("cluster_manager")
        }
        role => roles.contains(role),
    };
    let unknown: Vec<&str> =
        limits.keys().map(String::as_str).filter(|role| !is_known(role)).collect();
    if unknown.is_empty() || roles.is_empty() {
        return None;
    }
    Some(format!(
        "spec.restart.maxUnavailableOfRole limits {}, a role that no node has: it limits \
         nothing; the nodes have the roles {}",
        unknown.join(", "),
        roles.into_iter().collect::<Vec<_>>().join(", ")
    ))
}
