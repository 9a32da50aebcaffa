//! Selects the nodes of a request.

use std::collections::BTreeSet;

use super::observed::is_to_be_stopped;
use crate::context::Context;
use crate::rules::list_names;
use crate::{MAX_MEMBERS, Member, Pod, Target, Time};

/// Members for the nodes that a target selects, by name, without those kept stopped; or why there are none.
pub(crate) fn members_of(context: &Context<'_>, target: &Target) -> Result<Vec<Member>, String> {
    if let Some(missing) = target.nodes.iter().find(|node| !is_known(context, node)) {
        return Err(format!("there is no node {missing} among the cluster's pods"));
    }
    if let Some(message) = unknown_among(context, target) {
        return Err(message);
    }
    let mut members: Vec<Member> = context
        .index
        .pods()
        .filter(|pod| !pod.terminating && !is_to_be_stopped(context, pod))
        .filter(|pod| is_meant(context, target, pod))
        .map(|pod| scheduled(pod, context.snapshot.now))
        .collect();
    members.sort_by(|one, other| one.node.cmp(&other.node));
    if members.len() > MAX_MEMBERS {
        return Err(format!(
            "{} nodes are selected, and one restart has at most {MAX_MEMBERS}: select fewer with --node, \
             --role or --zone",
            members.len()
        ));
    }
    if !members.is_empty() {
        return Ok(members);
    }
    match &target.zone {
        Some(zone) if !zones(context).contains(zone.as_str()) => Err(no_such_zone(context, zone)),
        Some(_) | None => Err("it selects no node that may be restarted".into()),
    }
}

/// A member that waits for its turn.
pub(crate) fn scheduled(pod: &Pod, now: Time) -> Member {
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

/// Reason why the nodes with the role or the zone are unknown, if they are. A node that is left out because
/// it is down would stay as it is, and the restart would be done.
fn unknown_among(context: &Context<'_>, target: &Target) -> Option<String> {
    if !target.is_by_engine() {
        return None;
    }
    let pods = context.index.pods();
    let unknown: Vec<&str> = pods
        .filter(|pod| !pod.terminating && !is_to_be_stopped(context, pod))
        .filter(|pod| target.nodes.is_empty() || target.nodes.contains(&pod.node))
        .filter(|pod| match context.index.node(&pod.node) {
            Some(node) => node.roles_unknown && target.role.is_some(),
            None => remembered(context, pod).is_none(),
        })
        .map(|pod| pod.node.as_str())
        .collect();
    (!unknown.is_empty()).then(|| {
        let (they, are, do_not) = match unknown.len() {
            1 => ("it", "is", "does not"),
            _ => ("they", "are", "do not"),
        };
        format!(
            "role and zone of {} are not known: {they} {are} not in the cluster, or {do_not} answer; \
             request it again later, or name the nodes (`--node`)",
            list_names(&unknown),
        )
    })
}

/// The ledger's entry of a node under way, with the roles and the zone that it had before its stop.
fn remembered<'a>(context: &Context<'a>, pod: &Pod) -> Option<&'a Member> {
    let mut under_way = context.snapshot.ledger.under_way();
    under_way.find(|member| member.node == pod.node && !member.roles.is_empty())
}

fn is_known(context: &Context<'_>, node: &str) -> bool {
    context.index.pods().any(|pod| pod.node == node)
}

fn is_meant(context: &Context<'_>, target: &Target, pod: &Pod) -> bool {
    let before = remembered(context, pod);
    let (roles, zone) = match context.index.node(&pod.node) {
        Some(node) => (Some(&node.roles), node.zone.as_ref()),
        None => (before.map(|one| &one.roles), before.and_then(|one| one.zone.as_ref())),
    };
    let has_role =
        |role: &String| roles.is_some_and(|roles| roles.iter().any(|one| is_same_role(one, role)));
    let in_zone = |wanted: &String| zone == Some(wanted);
    (target.nodes.is_empty() || target.nodes.contains(&pod.node))
        && target.role.as_ref().is_none_or(has_role)
        && target.zone.as_ref().is_none_or(in_zone)
}

/// True if both names mean the same role. OpenSearch renamed `master`, and its nodes may report either name.
fn is_same_role(one: &str, other: &str) -> bool {
    let new_name = |role| if role == "master" { "cluster_manager" } else { role };
    new_name(one) == new_name(other)
}
