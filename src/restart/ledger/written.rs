//! The JSON form of the members of a restart. The status of [`MAX_MEMBERS`](super::MAX_MEMBERS) nodes
//! must fit into one object of the apiserver (1.5 MB) wherever the restart is, so each node takes one
//! line, and values that nodes have in common are written once. The pods that are done stay known: no
//! node is restarted twice.

mod restarting;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Ending, Member, MemberStep};
use crate::Time;
use restarting::Restarting;
use stayput_pod_update::UpdateStep;

/// The members of a restart in JSON.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Written {
    /// Nodes that wait for their turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scheduled: Vec<Scheduled>,
    /// Nodes that hold a slot, or have ended otherwise than done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    restarting: Vec<Restarting>,
    /// Nodes that are done, by name: uid of the pod, when it was done, sequences of our stop and of
    /// our start, the name of the pod if it differs, and `+` with the step if more than its process
    /// was made anew.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    done: BTreeMap<String, String>,
    /// All other nodes.
    members: Vec<Member>,
}

/// Nodes that have waited for the same time.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Scheduled {
    /// Since when.
    #[schemars(with = "String")]
    since: Time,
    /// By name: uid of the pod, and the name of the pod if it differs.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    nodes: BTreeMap<String, String>,
}

pub(super) fn serialize<S: Serializer>(
    members: &[Member],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut written = Written::default();
    for member in members {
        written.add(member);
    }
    written.sort_groups();
    written.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Member>, D::Error> {
    let Written { scheduled, restarting, done, mut members } = Written::deserialize(deserializer)?;
    let invalid = |node: &str| de::Error::custom(format!("the entry of {node} is damaged"));
    for Scheduled { since, nodes } in &scheduled {
        for (node, text) in nodes {
            members.push(read_scheduled(*since, node, text).ok_or_else(|| invalid(node))?);
        }
    }
    for group in &restarting {
        for (node, text) in &group.nodes {
            members.push(group.read(node, text).ok_or_else(|| invalid(node))?);
        }
    }
    for (node, text) in &done {
        members.push(read_done(node, text).ok_or_else(|| invalid(node))?);
    }
    sort(&mut members);
    Ok(members)
}

/// The order in which members are read, whichever fields they were written in.
pub(super) fn sort(members: &mut [Member]) {
    members.sort_by(|one, other| (&one.node, &one.pod_uid).cmp(&(&other.node, &other.pod_uid)));
}

impl Written {
    /// Sorts groups in an order that does not depend on their members: a node that leaves its group
    /// moves no other, so it changes only a small part of the ledger.
    fn sort_groups(&mut self) {
        self.scheduled.sort_by_key(|group| group.since);
        self.restarting.sort_by(|one, other| one.in_common().cmp(&other.in_common()));
    }

    /// Adds a line, if the member can be read back from it, and no other node has its name.
    fn add(&mut self, member: &Member) {
        let node = &member.node;
        let line = line(member);
        let is_taken = |nodes: &BTreeMap<String, String>| nodes.contains_key(node);
        if read_scheduled(member.since, node, &line).as_ref() == Some(member) {
            let group = match self.scheduled.iter().position(|one| one.since == member.since) {
                Some(at) => at,
                None => {
                    let group = Scheduled { since: member.since, nodes: BTreeMap::new() };
                    self.scheduled.push(group);
                    self.scheduled.len() - 1
                }
            };
            if !is_taken(&self.scheduled[group].nodes) {
                self.scheduled[group].nodes.insert(node.clone(), line);
                return;
            }
        } else if read_done(node, &line).as_ref() == Some(member) && !is_taken(&self.done) {
            self.done.insert(node.clone(), line);
            return;
        } else if member.step != MemberStep::Scheduled
            && restarting::add(&mut self.restarting, member)
        {
            return;
        }
        self.members.push(member.clone());
    }
}

/// The fields of a member that waits or is done, without its name.
fn line(member: &Member) -> String {
    let Member { pod_uid, pod, node, step, since, stop_sequence, start_sequence, done_by, .. } =
        member;
    let mut line = pod_uid.clone();
    if *step == MemberStep::Finished {
        line += &format!(" {since} {stop_sequence} {start_sequence}");
    }
    if pod != node {
        line += &format!(" {pod}");
    }
    if let Some(step) = done_by {
        line += &format!(" +{}", step.name());
    }
    line
}

fn read_scheduled(since: Time, node: &str, line: &str) -> Option<Member> {
    let mut words = line.split(' ');
    let pod_uid = words.next()?.to_owned();
    let pod = words.next().unwrap_or(node).to_owned();
    let node = node.to_owned();
    words.next().is_none().then(|| Member { pod_uid, pod, node, since, ..Member::default() })
}

fn read_done(node: &str, line: &str) -> Option<Member> {
    let (line, done_by) = match line.rsplit_once(" +") {
        Some((line, step)) => (line, Some(step_of(step)?)),
        None => (line, None),
    };
    let mut words = line.split(' ');
    let member = Member {
        pod_uid: words.next()?.to_owned(),
        since: Time::parse(words.next()?).ok()?,
        stop_sequence: words.next()?.parse().ok()?,
        start_sequence: words.next()?.parse().ok()?,
        pod: words.next().unwrap_or(node).to_owned(),
        node: node.to_owned(),
        ..Member::default()
    };
    words.next().is_none().then(|| Member { done_by, ..member.done(Ending::done()) })
}

/// The step with this name.
fn step_of(name: &str) -> Option<UpdateStep> {
    let named = serde_json::Value::String(name.to_owned());
    serde_json::from_value(named).ok()
}

#[cfg(test)]
mod tests;
