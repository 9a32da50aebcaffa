//! Members that hold a slot, or have ended otherwise than done: values that they have in common are
//! written once, also why they are brought back.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::ledger::{Compensation, Ending, Member, MemberStep};
use stayput_api::ConfigChoice;

/// Nodes that are equally far, since the same time: all nodes of a coordinated restart.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restarting {
    /// Since when.
    #[schemars(with = "String")]
    since: Time,
    /// How far they are.
    #[serde(default = "restarting", skip_serializing_if = "is_restarting")]
    step: MemberStep,
    /// How often they gave their slots back.
    #[serde(default, skip_serializing_if = "is_zero")]
    given_back: u32,
    /// How they ended, or will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
    /// The config on which they are brought back, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    back_on: Option<ConfigChoice>,
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
    /// engine's node (`-` if not known), the name of the pod if it differs, and with `+` the sequences of
    /// the stop (0 if none) and of the start that bring the node back.
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

/// The values that the nodes of a group have in common.
type InCommon<'a> = (
    (Time, MemberStep, u32),
    (&'a Option<Ending>, Option<ConfigChoice>),
    (&'a Option<String>, bool, &'a BTreeSet<String>, &'a Option<String>),
);

const fn restarting() -> MemberStep {
    MemberStep::Restarting
}

fn is_restarting(step: &MemberStep) -> bool {
    *step == MemberStep::Restarting
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The compensation that brings a node back, from the end of its line.
fn compensation(config: ConfigChoice, text: &str) -> Option<Compensation> {
    let (stop, start) = text.split_once(' ')?;
    let stop: u64 = stop.parse().ok()?;
    let stop_sequence = (stop > 0).then_some(stop);
    Some(Compensation { stop_sequence, start_sequence: start.parse().ok()?, config })
}

/// The fields of a member without its name and those of its group.
fn line(member: &Member) -> String {
    let Member { pod_uid, pod, node, stop_sequence, start_sequence, .. } = member;
    let [ephemeral_id, node_id] =
        [&member.ephemeral_id, &member.node_id].map(|id| id.as_deref().unwrap_or("-"));
    let mut line = format!("{pod_uid} {stop_sequence} {start_sequence} {ephemeral_id} {node_id}");
    if pod != node {
        line += &format!(" {pod}");
    }
    if let Some(back) = &member.compensation {
        line += &format!(" +{} {}", back.stop_sequence.unwrap_or_default(), back.start_sequence);
    }
    line
}

impl Restarting {
    /// A group without nodes that the member belongs to.
    fn of(member: &Member) -> Self {
        Self {
            since: member.since,
            step: member.step,
            given_back: member.given_back,
            ending: member.ending.clone(),
            back_on: member.compensation.as_ref().map(|back| back.config),
            expected: member.expected.clone(),
            master_eligible: member.master_eligible,
            roles: member.roles.clone(),
            zone: member.zone.clone(),
            nodes: BTreeMap::new(),
        }
    }

    /// The values that the nodes of this group have in common.
    pub(super) fn in_common(&self) -> InCommon<'_> {
        let how_far = (self.since, self.step, self.given_back);
        let ended = (&self.ending, self.back_on);
        let node = (&self.expected, self.master_eligible, &self.roles, &self.zone);
        (how_far, ended, node)
    }

    /// The member of this line, unless the line is damaged.
    pub(super) fn read(&self, node: &str, line: &str) -> Option<Member> {
        let (line, back) = match line.rsplit_once(" +") {
            Some((line, back)) => (line, Some(back)),
            None => (line, None),
        };
        let compensation = match (self.back_on, back) {
            (Some(config), Some(back)) => Some(compensation(config, back)?),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let mut words = line.split(' ');
        let known = |word: &str| (word != "-").then(|| word.to_owned());
        let member = Member {
            step: self.step,
            given_back: self.given_back,
            since: self.since,
            ending: self.ending.clone(),
            compensation,
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
