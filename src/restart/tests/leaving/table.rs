//! Reads the table: a cluster in words, and what is decided. Cases are apart by an empty line, `#`
//! begins a remark, and a line is `key: text`.

use std::collections::BTreeSet;

use super::world::World;
use crate::changes::Changes;
use crate::ledger::LedgerChange;
use crate::tests::world::perform::describe_action;
use crate::{Action, ExcludedBefore, Leaving};

/// One case.
#[derive(Default)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) world: World,
    pub(super) is_silent: bool,
    pub(super) does: String,
    /// Node, and part of what it waits for.
    pub(super) says: Vec<(String, String)>,
    pub(super) refused: String,
}

pub(super) fn cases(table: &str) -> Vec<Case> {
    let lines: Vec<&str> =
        table.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let blocks = lines.split(|line| line.is_empty()).filter(|block| !block.is_empty());
    blocks.map(case).collect()
}

fn case(lines: &[&str]) -> Case {
    let mut case = Case::default();
    for line in lines {
        let (key, text) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
        case.line(key, text);
    }
    case
}

fn names(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `unset` or the value.
fn value(text: &str) -> Option<String> {
    (text != "unset").then(|| text.trim_matches('"').to_owned())
}

impl Case {
    fn line(&mut self, key: &str, text: &str) {
        let world = &mut self.world;
        match key {
            "case" => text.clone_into(&mut self.name),
            "sets" => *world = World::of(&text.split(", ").map(set).collect::<Vec<_>>()),
            "shards" => {
                let (node, count) = text.split_once(' ').unwrap();
                world.shards.insert(node.to_owned(), count.parse().unwrap());
            }
            "stuck" => {
                let (node, why) = text.split_once(' ').unwrap();
                world.stuck.insert(node.to_owned(), why.to_owned());
            }
            "roles" => {
                let (node, roles) = text.split_once(' ').unwrap();
                world.roles.insert(node.to_owned(), names(roles));
            }
            "persistent" => world.excluded.persistent = value(text),
            "transient" => world.excluded.transient = value(text),
            "votes excluded" => world.excluded_voters = names(text),
            "voters" => world.voters = names(text),
            "no votes" => world.has_votes = text != "true",
            "not listed" => world.listed.retain(|node| !names(text).contains(node)),
            "listed" => world.listed.extend(names(text)),
            "pods" => world.pods.extend(names(text)),
            "closed and not moved" => world.immovable = names(text),
            "roles unknown" => world.silent = names(text),
            "no primary" => world.without_primary = Some(text.to_owned()),
            "owed" => world.debts.nodes = names(text),
            "owed persistent" => world.debts.persistent = before(text),
            "owed transient" => world.debts.transient = before(text),
            "owed vote" => world.debts.voter = Some(text.to_owned()),
            "paused" => world.paused = text == "true",
            "outside windows" => world.outside_windows = text == "true",
            "unfinished" => world.unfinished = Some(text.to_owned()),
            "busy" => world.busy = names(text),
            "restart" => world.has_restart = text == "open",
            "under way" => world.under_way = text == "true",
            "late votes" => world.late_votes = names(text),
            "uncounted" => world.uncounted = names(text),
            "silent" => self.is_silent = text == "true",
            "does" => text.clone_into(&mut self.does),
            "refused" => text.clone_into(&mut self.refused),
            "says" => {
                let (node, part) = text.split_once(' ').unwrap();
                self.says.push((node.to_owned(), part.to_owned()));
            }
            other => panic!("{other} is no key"),
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the value of the field")]
fn before(text: &str) -> Option<ExcludedBefore> {
    Some(ExcludedBefore { value: value(text) })
}

/// `data 3`, `data 3 -> 2` or `data 3 -> none`.
fn set(text: &str) -> (&str, u32, Option<u32>) {
    let parts: Vec<&str> = text.split(' ').collect();
    let count = |text: &str| text.parse().unwrap();
    match parts[..] {
        [name, now] => (name, count(now), Some(count(now))),
        [name, now, "->", "none"] => (name, count(now), None),
        [name, now, "->", wanted] => (name, count(now), Some(count(wanted))),
        _ => panic!("{text}"),
    }
}

/// The step in one line.
pub(super) fn step(step: &Changes) -> String {
    match (&step.ledger[..], &step.actions[..]) {
        ([], []) => "nothing".to_owned(),
        ([LedgerChange::SetLeaving { leaving, .. }], []) => format!("write {}", owed(leaving)),
        ([], [Action::ExcludeVoter { node }]) => format!("exclude vote {node}"),
        ([], [Action::ClearVotingExclusions]) => "clear votes".to_owned(),
        ([], [action]) => describe_action(action),
        _ => panic!("{step:#?}"),
    }
}

fn owed(debts: &Leaving) -> String {
    let Leaving { nodes, persistent, transient, voter } = debts;
    let nodes = nodes.iter().cloned().collect::<Vec<_>>().join(" ");
    let before = |level: &str, before: &Option<ExcludedBefore>| match before {
        None => String::new(),
        Some(before) => match &before.value {
            None => format!("; {level} was unset"),
            Some(value) => format!("; {level} was \"{value}\""),
        },
    };
    let voter = voter.as_ref().map(|voter| format!("; vote {voter}")).unwrap_or_default();
    let nodes = if nodes.is_empty() { "none" } else { &nodes };
    format!("{nodes}{}{}{voter}", before("persistent", persistent), before("transient", transient))
}
