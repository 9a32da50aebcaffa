//! What the policy names and nobody knows: said, and never in the way.

use std::collections::BTreeSet;

use crate::Reason;
use crate::planner::Planner;

impl Planner<'_> {
    /// Tells what cannot be understood in the policy: a rule that somebody thinks is off is asked all
    /// the same, and a limit that somebody thinks is there holds nobody back.
    pub(super) fn doubt_policy(&mut self) {
        if let Some(message) = self.policy.disabled.unknown() {
            self.tell(None, Reason::InputIgnored, message);
        }
        // Once a restart, at its beginning: in the middle of it a node that is down takes its roles
        // along.
        let begins = self.snapshot.ledger.restart.is_none() && self.ledger.restart.is_some();
        if begins && let Some(message) = self.unknown_roles() {
            self.tell(None, Reason::InputIgnored, message);
        }
    }

    /// Limits for roles that no node has. Who is not listed may have any role, and so may who told
    /// none: then nothing is said.
    fn unknown_roles(&self) -> Option<String> {
        let limits = &self.policy.max_unavailable_of_role;
        if limits.is_empty() {
            return None;
        }
        let nodes: Option<Vec<_>> = self.view.pods().map(|pod| self.view.node(&pod.node)).collect();
        let nodes = nodes?;
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
            "spec.restart.maxUnavailableOfRole limits {}, a role that no node has: it holds nobody \
             back; roles there are {}",
            unknown.join(", "),
            roles.into_iter().collect::<Vec<_>>().join(", ")
        ))
    }
}
