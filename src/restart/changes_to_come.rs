//! Number of nodes that are still to be restarted for changed configs and templates.

use std::collections::BTreeSet;

use super::context::Context;
use super::{Known, Policy, Snapshot, flow};

/// Number of nodes that are still to be restarted for a changed config or template, at once or after
/// earlier work. Nodes that leave do not count, nor do templates that wait for a person: the step is not
/// allowed, or was given up. Unknown if it is not known of a pod whether its template has changed.
pub fn changes_to_come(snapshot: &Snapshot, policy: &Policy) -> Known<u32> {
    let pods = || snapshot.pods.iter().filter(|pod| pod.leaving.is_none());
    let mut pending: BTreeSet<&str> =
        pods().filter(|pod| pod.drifts()).map(|pod| pod.uid.as_str()).collect();
    if !policy.update.is_empty() {
        if let Some(unknown) = pods().find_map(|pod| pod.update.as_ref().err()) {
            return Err(unknown.clone());
        }
        let context = Context::new(snapshot, policy);
        pending.extend(flow::updates_to_come(&context).map(|pod| pod.uid.as_str()));
    }
    Ok(u32::try_from(pending.len()).unwrap_or(u32::MAX))
}
