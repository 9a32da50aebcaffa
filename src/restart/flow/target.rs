//! Which nodes a request selects.

use std::collections::BTreeSet;

use super::observed::is_to_be_stopped;
use crate::context::Context;
use crate::rules::list_names;
use crate::{Member, Pod, Target, Time};

/// The nodes that a target selects, by name, without those kept stopped; or why there are none.
pub(super) fn members_of(context: &Context<'_>, target: &Target) -> Result<Vec<Member>, String> {
    if let Some(missing) = target.nodes.iter().find(|node| !is_known(context, node)) {
        return Err(format!("there is no node {missing} among the cluster's pods"));
    }
    let mut members: Vec<Member> = context
        .index
        .pods()
        .filter(|pod| !pod.terminating && !is_to_be_stopped(context, pod))
        .filter(|pod| is_meant(context, target, pod))
        .map(|pod| scheduled(pod, context.snapshot.now))
        .collect();
    members.sort_by(|one, other| one.node.cmp(&other.node));
    if !members.is_empty() {
        return Ok(members);
    }
    match &target.zone {
        Some(zone) if !zones(context).contains(zone.as_str()) => Err(no_such_zone(context, zone)),
        Some(_) | None => Err("it means no node that may be restarted".into()),
    }
}

/// A member that waits for its turn.
pub(super) fn scheduled(pod: &Pod, now: Time) -> Member {
    Member {
        pod_uid: pod.uid.clone(),
        pod: pod.name.clone(),
        node: pod.node.clone(),
        since: now,
        ..Member::default()
    }
}

/// The zones that nodes of our pods are in.
fn zones<'a>(context: &Context<'a>) -> BTreeSet<&'a str> {
    let nodes = context.index.pods().filter_map(|pod| context.index.node(&pod.node));
    nodes.filter_map(|node| node.zone.as_deref()).collect()
}

/// The message about a zone without nodes, with the zones that exist.
fn no_such_zone(context: &Context<'_>, zone: &str) -> String {
    let attribute = &context.policy.zone_attribute;
    let zones: Vec<&str> = zones(context).into_iter().collect();
    if zones.is_empty() {
        return format!(
            "no node of the cluster has the attribute {attribute} (node.attr.{attribute}), so \
             there are no zones; spec.restart.zoneAttribute names another attribute"
        );
    }
    let pods = context
        .index
        .pods()
        .filter(|pod| context.index.node(&pod.node).is_some_and(|node| node.zone.is_none()));
    let without = match pods.count() {
        0 => String::new(),
        1 => format!("; 1 node has no attribute {attribute}"),
        more => format!("; {more} nodes have no attribute {attribute}"),
    };
    format!("no node is in zone {zone:?}, there are {}{without}", list_names(&zones))
}

fn is_known(context: &Context<'_>, node: &str) -> bool {
    context.index.pods().any(|pod| pod.node == node)
}

fn is_meant(context: &Context<'_>, target: &Target, pod: &Pod) -> bool {
    let node = context.index.node(&pod.node);
    let has_role = |role: &String| node.is_some_and(|node| node.roles.contains(role));
    let in_zone = |zone: &String| node.is_some_and(|node| node.zone.as_ref() == Some(zone));
    (target.nodes.is_empty() || target.nodes.contains(&pod.node))
        && target.role.as_ref().is_none_or(has_role)
        && target.zone.as_ref().is_none_or(in_zone)
}
