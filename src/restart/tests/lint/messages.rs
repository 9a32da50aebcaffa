//! What people read: messages of waits, events, conditions, nodes and endings, each by rules in words.
//! Nothing that costs data or availability is advised first; a name says what blocks; no value of the
//! program and no part that is empty is shown; a number says of what. A deletion that waits says for
//! what.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use super::down;
use super::facts::Input;
use crate::index::Hashed;
use crate::{Action, Condition, Ledger, Plan, Report, Snapshot, Voting, report};

/// What is wrong with a text, and whether it is.
type Rule = (&'static str, fn(&str) -> bool);

const RULES: [Rule; 6] = [
    ("advises first what costs something", advises_a_cost_first),
    ("shows a value of the program", shows_a_value),
    ("has an empty part", has_an_empty_part),
    ("has a full stop before another sign", has_a_full_stop_too_many),
    ("has a number and does not say of what", has_a_bare_number),
    ("says a name twice in a row", says_a_name_twice),
];

thread_local! {
    /// Texts that break no rule. Most are shown at many steps, and the rules take most of a step's time.
    static GOOD: RefCell<HashSet<String, Hashed>> = RefCell::default();
}

/// Which rules a text breaks.
fn faults(text: &str) -> Vec<&'static str> {
    if GOOD.with_borrow(|good| good.contains(text)) {
        return vec![];
    }
    let broken = RULES.iter().filter(|(_, breaks)| breaks(text));
    let broken: Vec<&str> = broken.map(|(fault, _)| *fault).collect();
    if broken.is_empty() {
        GOOD.with_borrow_mut(|good| good.insert(text.to_owned()));
    }
    broken
}

/// Settings that let a rule pass which protects something.
const COSTLY: [&str; 3] = ["allowOutage: true", "--allow-outage", "the annotation eck."];

/// Options that accept a risk for one request.
const RISKY: [&str; 2] = ["--allow-unreplicated", "--skip-rule"];

fn advises_a_cost_first(text: &str) -> bool {
    let first = |words: &[&str]| words.iter().filter_map(|word| text.find(word)).min();
    let is_last_resort = |at: usize| text[..at].contains("; as a last resort, ");
    // Another remedy, or that it passes by itself.
    let is_another =
        |at: usize| [", or ", ": waits until "].iter().any(|one| text[..at].contains(one));
    first(&COSTLY).is_some_and(|at| !is_last_resort(at))
        || first(&RISKY).is_some_and(|at| !is_last_resort(at) && !is_another(at))
}

fn shows_a_value(text: &str) -> bool {
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    let shown = ["Some(", "Ok(", "Err(", " { ", "\\\"", "\\n"];
    words.any(|word| word == "None") || shown.iter().any(|value| text.contains(value))
}

fn has_an_empty_part(text: &str) -> bool {
    let empty = [
        "\"\"", "''", "``", "()", "[]", "  ", ": ;", ":;", ": :", ": )", ":)", "; ;", ";;", ";)",
        "(;", "(:", "(,", " ;", " ,", " :", ",,", ", ,", ",;", ",)",
    ];
    let (first, last) = (text.chars().next(), text.chars().next_back());
    let is_open = |sign: char| ":;,(-".contains(sign) || sign.is_whitespace();
    empty.iter().any(|part| text.contains(part))
        || first.is_some_and(|sign| ":;,).".contains(sign) || sign.is_whitespace())
        || last.is_some_and(|sign| is_open(sign) && !text.ends_with("predicates-"))
}

fn has_a_full_stop_too_many(text: &str) -> bool {
    [".;", ".,", ".:", ".)"].iter().any(|signs| text.contains(signs))
        || text.replace("...", "").contains("..")
}

/// Words before a number that is a name, or of something that was said just before.
const NUMBERED: [&str; 8] = ["code", "sequence", "shard", "signal", "port", "from", "to", "allows"];

fn has_a_bare_number(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.iter().enumerate().any(|(at, word)| {
        let word = word.trim_start_matches(['(', '"']);
        let number = word.trim_end_matches([';', ',', ':', '.', ')', '"']);
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        let is_last = number.len() < word.len() || at + 1 == words.len();
        let before = at.checked_sub(1).map(|before| words[before]);
        is_number && is_last && !before.is_some_and(|before| NUMBERED.contains(&before))
    })
}

fn says_a_name_twice(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| pair[0] == pair[1] && pair[0].ends_with(':'))
}

/// Whom a message is about, and what it says.
struct Text<'a> {
    from: String,
    pod: Option<&'a str>,
    text: &'a str,
}

pub(super) fn check(facts: &Input, plan: &Plan, wrong: &mut Vec<String>) {
    let snapshot = facts.snapshot;
    let report = report(snapshot, facts.policy, plan);
    deletion(snapshot, &report, wrong);
    down::check(facts, &report, wrong);
    let names = names(snapshot);
    let blocks = |one: &&Condition| one.kind == "Blocked" && one.status == "True";
    for blocked in report.conditions.iter().filter(blocks) {
        let blocks = what_blocks(&blocked.message);
        if !names.iter().any(|name| blocks.contains(*name)) {
            let Condition { reason, message, .. } = blocked;
            wrong.push(format!("what blocks ({reason}) is not named: {message}"));
        }
    }
    for Text { from, pod, text } in texts(snapshot, plan, &report) {
        for fault in faults(text) {
            wrong.push(format!("a message of {from} {fault}: {text}"));
        }
        let manager = pod.and_then(|uid| facts.manager(uid));
        if text.contains("last good") && manager.is_some_and(|manager| manager.last_good.is_none())
        {
            wrong
                .push(format!("a message of {from} names a last good config, and none is: {text}"));
        }
    }
}

/// The message without the nodes of a zone that could go alone: these do not block it.
fn what_blocks(message: &str) -> &str {
    message.split_once("; a smaller step that is possible now: ").map_or(message, |(what, _)| what)
}

/// Everything that this plan and the status beside it show.
fn texts<'a>(snapshot: &'a Snapshot, plan: &'a Plan, report: &'a Report) -> Vec<Text<'a>> {
    let mut texts = Vec::new();
    let mut add = |from: String, pod: Option<&'a str>, text: &'a str| {
        if !text.is_empty() {
            texts.push(Text { from, pod, text });
        }
    };
    for wait in &plan.waiting {
        add(format!("wait {}", wait.code.as_str()), wait.pod.as_deref(), &wait.message);
    }
    for action in &plan.actions {
        match action {
            Action::RecordEvent(event) => {
                let from = format!("event {}", event.reason.as_str());
                add(from, event.pod.as_deref(), &event.message);
            }
            Action::WriteLedger(ledger) => {
                endings(&snapshot.ledger, ledger).for_each(|text| add("ledger".into(), None, text));
            }
            _ => {}
        }
    }
    let status = [&report.message, &report.source_absent, &report.estimate];
    status.into_iter().flatten().for_each(|text| add("status".into(), None, text));
    for condition in &report.conditions {
        add(format!("condition {}", condition.kind), None, &condition.message);
    }
    for node in &report.nodes {
        let pod = snapshot.pods.iter().find(|pod| pod.node == node.name);
        let message = node.message.as_deref().unwrap_or_default();
        add(format!("node {}", node.name), pod.map(|pod| &*pod.uid), message);
        node.because.iter().for_each(|text| add(format!("node {}", node.name), None, text));
    }
    texts
}

/// The reasons in a ledger that the one before does not have.
fn endings<'a>(old: &'a Ledger, new: &'a Ledger) -> impl Iterator<Item = &'a str> {
    let of = |ledger: &'a Ledger| {
        let history = ledger.history.iter().map(|entry| &*entry.reason);
        let restart = ledger.restart.iter().filter_map(|restart| restart.ending.as_ref());
        let members = ledger.members().filter_map(|member| member.ending.as_ref());
        history.chain(restart.chain(members).map(|ending| &*ending.reason))
    };
    let known: BTreeSet<&str> = of(old).collect();
    of(new).filter(move |reason| !known.contains(reason))
}

/// Everything that a message can name: what blocks is one of it.
fn names(snapshot: &Snapshot) -> BTreeSet<&str> {
    let mut names = BTreeSet::from([
        "the engine",
        "the cluster",
        "SearchCluster",
        "spec.",
        "status.",
        "stayput.dev/",
        "allocation",
        "kubectl",
    ]);
    names.extend(snapshot.pods.iter().flat_map(|pod| [&*pod.name, &*pod.node]));
    let operators = snapshot.pods.iter().filter_map(|pod| pod.operator.as_ref());
    names.extend(operators.map(|operator| operator.kind.object()));
    let ledger = &snapshot.ledger;
    names.extend(ledger.members().map(|member| &*member.node));
    names.extend(ledger.debts.start.iter().map(|debt| &*debt.node));
    if let Ok(engine) = &snapshot.engine {
        names.extend(engine.nodes.iter().map(|node| &*node.name));
        if let Ok(Voting::Configurations { excluded, .. }) = &engine.voting {
            names.extend(excluded.iter().map(String::as_str));
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// A deletion that waits says for what.
fn deletion(snapshot: &Snapshot, report: &Report, wrong: &mut Vec<String>) {
    let waits = snapshot.cluster.deleting && snapshot.cluster.finalizer;
    if waits && report.message.as_ref().is_none_or(|text| text.is_empty()) {
        wrong.push("a deletion that waits does not say for what".into());
    }
}
