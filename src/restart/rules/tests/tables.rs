//! The tables of `tables/`, written for people who know clusters but not this code.

use std::collections::BTreeSet;

use super::table::{Case, cases};
use crate::index::{Index, NameSet};
use crate::rules::{Evaluation, order, predicates, select};
use crate::{Disabled, Pod, Predicate};

/// A name, the code that blocks it, and the message; no code if it is restarted.
type Answer = (String, Option<(&'static str, String)>);

impl Case {
    fn pod(&self, name: &str) -> &Pod {
        let found = self.snapshot.pods.iter().find(|pod| pod.name == *name);
        found.unwrap_or_else(|| panic!("{}: no pod {name}", self.name))
    }

    /// Calls `ask` with the evaluation, in which the picked nodes have slots; or returns why there
    /// is no evaluation.
    fn evaluate<'s, T>(
        &'s self,
        ask: impl FnOnce(&mut Evaluation<'s>, &Index<'s>) -> T,
    ) -> Result<T, Answer> {
        let view = Index::new(&self.snapshot);
        let together: Vec<&Pod> = self.together.iter().map(|name| self.pod(name)).collect();
        let together: NameSet<'_> = together.iter().map(|pod| pod.uid.as_str()).collect();
        let evaluation = Evaluation::of(&view, &self.snapshot.ledger, &self.policy, &together);
        let mut evaluation =
            evaluation.map_err(|no| ("all".to_owned(), Some((no.code.as_str(), no.message))))?;
        self.picked.iter().for_each(|name| evaluation.take_slot(&self.pod(name).uid));
        Ok(ask(&mut evaluation, &view))
    }

    /// The result of one evaluation of all requested nodes, as when nodes are chosen.
    pub(super) fn select(&self) -> Vec<Answer> {
        let asked = self.asked.iter().filter(|name| !self.picked.contains(name));
        let asked: Vec<&Pod> = asked.map(|name| self.pod(name)).collect();
        let turns = self.evaluate(|evaluation, view| {
            let candidates = order(asked.iter().copied(), view.engine().ok());
            select(evaluation, &candidates, self.strategy, |_, _, _| Ok(()))
        });
        let turns = match turns {
            Ok(turns) => turns,
            Err(no) => return vec![no],
        };
        let answer = |(pod, check): (&Pod, crate::changes::Check)| {
            (pod.name.clone(), check.err().map(|no| (no.code.as_str(), no.message)))
        };
        turns.into_iter().map(answer).collect()
    }

    /// The result of one predicate for each requested node.
    fn ask(&self, predicate: Predicate) -> Vec<Answer> {
        let asked = self.asked.iter().filter(|name| !self.picked.contains(name));
        let answers = self.evaluate(|evaluation, _| {
            asked
                .map(|name| {
                    let peer = evaluation.peer(&self.pod(name).uid).expect("not kept stopped");
                    let check = predicates::check(predicate, evaluation, peer);
                    (name.clone(), check.err().map(|no| (no.code.as_str(), no.message)))
                })
                .collect()
        });
        answers.unwrap_or_else(|no| vec![no])
    }

    /// How the answers differ from the case; empty if they do not.
    fn differences(&self, answers: &[Answer], rule: &str) -> String {
        let goes: Vec<&str> =
            answers.iter().filter(|(_, no)| no.is_none()).map(|(name, _)| name.as_str()).collect();
        let mut waits: Vec<(&str, &str)> =
            answers.iter().filter_map(|(name, no)| Some((name.as_str(), no.as_ref()?.0))).collect();
        let mut expected: Vec<(&str, &str)> = self
            .waits
            .iter()
            .map(|(name, code)| (name.as_str(), if code.is_empty() { rule } else { code }))
            .collect();
        waits.sort_unstable();
        expected.sort_unstable();
        let message = |name: &String| {
            let answer = answers.iter().find(|(other, _)| other == name);
            answer.and_then(|(_, no)| Some(no.as_ref()?.1.as_str())).unwrap_or_default()
        };
        let wrong_message = self.says.iter().find(|(name, text)| !message(name).contains(text));
        if goes == self.goes
            && waits == expected
            && wrong_message.is_none()
            && !self.name.is_empty()
        {
            return String::new();
        }
        format!(
            "case {}\n  says {:?} {expected:?} {wrong_message:?}\n  is {answers:?}\n",
            self.name, self.goes
        )
    }
}

/// The cases of a table, each under a name of its own.
fn read(table: &str, text: &str) -> Vec<Case> {
    let cases = cases(text);
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert!(!cases.is_empty() && names.len() == cases.len(), "{table}: two cases of one name");
    cases
}

macro_rules! selection {
    ($($table:ident)*) => {$(
        #[test]
        fn $table() {
            let table = stringify!($table);
            let cases = read(table, include_str!(concat!("tables/", stringify!($table), ".txt")));
            let differences = cases.iter().map(|case| case.differences(&case.select(), ""));
            let differences: String = differences.collect();
            print!("{differences}");
            assert!(differences.is_empty(), "{table}.txt");
        }
    )*};
}

selection! {
    selection
    role_change
    sort
    healthy
    non_ha
    forced
    disabled
    in_place
    in_place_bad_input
    unreplicated
    deleted_data
}

macro_rules! predicates {
    ($($table:ident)*) => {$(
        #[test]
        fn $table() {
            let table = stringify!($table);
            let is_it = |one: &Predicate| one.name().eq_ignore_ascii_case(table);
            let predicate = Predicate::ALL.into_iter().find(is_it).expect("a predicate");
            let text = include_str!(concat!("tables/predicates/", stringify!($table), ".txt"));
            let mut differences = String::new();
            for mut case in read(table, text) {
                differences += &case.differences(&case.ask(predicate), predicate.name());
                // What is disabled is not evaluated, whatever could not be read.
                case.policy.disabled = Disabled::by_annotation(predicate.name());
                let refused = case.ask(predicate).into_iter().find(|(_, no)| no.is_some());
                assert_eq!(refused, None, "{table}, case {}: disabled", case.name);
            }
            print!("{differences}");
            assert!(differences.is_empty(), "{table}.txt");
        }
    )*};
}

predicates! {
    data_tier_with_higher_priority_must_be_upgraded_first
    do_not_restart_healthy_node_if_maxunavailable_reached
    skip_already_terminating_pods
    only_restart_healthy_node_if_green_or_yellow
    if_yellow_only_restart_upgrading_nodes_with_unassigned_replicas
    require_started_replica
    one_master_at_a_time
    do_not_delete_last_master_if_all_master_ineligible_nodes_are_not_upgraded
    do_not_delete_pods_with_same_shards
    do_not_delete_all_members_of_a_tier
    do_not_interrupt_running_snapshot
}
