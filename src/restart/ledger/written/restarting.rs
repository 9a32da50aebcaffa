//! Members that hold a slot and whose turn has taken no special way: what they have in common is
//! written once.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::ledger::{Member, MemberStep};

/// Nodes that took their slots together: all nodes of a coordinated restart.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restarting {
    /// Since when.
    #[schemars(with = "String")]
    since: Time,
    /// Checksum they are to be started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Can be elected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    master_eligible: bool,
    /// Roles of the engine's node.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    roles: BTreeSet<String>,
    /// Zone of the engine's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    /// By name: uid of the pod, sequences of our stop and of our start, ephemeral id and id of the
    /// engine's node (`-` if not known), and the name of the pod if it differs.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub(super) nodes: BTreeMap<String, String>,
}

/// Adds a line for the member. False if it cannot be read back from one, or another node has its
/// name: then nothing is added.
pub(super) fn add(groups: &mut Vec<Restarting>, member: &Member) -> bool {
    let group = Restarting::of(member);
    let (node, line) = (&member.node, line(member));
    if group.read(node, &line).as_ref() != Some(member) {
        return false;
    }
    let is_its = |one: &Restarting| one.in_common() == group.in_common();
    let at = groups.iter().position(is_its).unwrap_or_else(|| {
        groups.push(group);
        groups.len() - 1
    });
    let nodes = &mut groups[at].nodes;
    let is_free = !nodes.contains_key(node);
    if is_free {
        nodes.insert(node.clone(), line);
    }
    is_free
}

/// What is not in the name and in the group of a member.
fn line(member: &Member) -> String {
    let Member { pod_uid, pod, node, stop_sequence, start_sequence, .. } = member;
    let [ephemeral_id, node_id] =
        [&member.ephemeral_id, &member.node_id].map(|id| id.as_deref().unwrap_or("-"));
    let mut line = format!("{pod_uid} {stop_sequence} {start_sequence} {ephemeral_id} {node_id}");
    if pod != node {
        line += &format!(" {pod}");
    }
    line
}

impl Restarting {
    /// A group without nodes that the member belongs to.
    fn of(member: &Member) -> Self {
        Self {
            since: member.since,
            expected: member.expected.clone(),
            master_eligible: member.master_eligible,
            roles: member.roles.clone(),
            zone: member.zone.clone(),
            nodes: BTreeMap::new(),
        }
    }

    /// What its nodes have in common.
    pub(super) fn in_common(
        &self,
    ) -> (Time, &Option<String>, bool, &BTreeSet<String>, &Option<String>) {
        let Self { since, expected, master_eligible, roles, zone, nodes: _ } = self;
        (*since, expected, *master_eligible, roles, zone)
    }

    /// The member of this line; none if the line is damaged.
    pub(super) fn read(&self, node: &str, line: &str) -> Option<Member> {
        let mut words = line.split(' ');
        let known = |word: &str| (word != "-").then(|| word.to_owned());
        let member = Member {
            step: MemberStep::Restarting,
            since: self.since,
            expected: self.expected.clone(),
            master_eligible: self.master_eligible,
            roles: self.roles.clone(),
            zone: self.zone.clone(),
            pod_uid: words.next()?.to_owned(),
            stop_sequence: words.next()?.parse().ok()?,
            start_sequence: words.next()?.parse().ok()?,
            ephemeral_id: known(words.next()?),
            node_id: known(words.next()?),
            pod: words.next().unwrap_or(node).to_owned(),
            node: node.to_owned(),
            ..Member::default()
        };
        words.next().is_none().then_some(member)
    }
}
