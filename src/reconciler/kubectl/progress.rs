//! From one look to the next: what changed, a line each. Pure: time enters with the look.

use std::collections::{BTreeMap, BTreeSet};

use super::pages::UNSEEN;
use super::text::{Tone, nodes, spoken};
use super::view::{Pod, View};
use stayput_restart::{HistoryEntry, Outcome, Phase, Restart, Step, Time};

/// How long a request may lie there before somebody should ask whether the reconciler runs.
const UNHEARD: u64 = 15_000;

/// How long the pods may show their last phase when the ledger has closed a restart already.
const AFTERMATH: u64 = 2_000;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was seen.
    pub time: Time,
    /// The node it is about; none for the cluster as a whole.
    pub node: Option<String>,
    /// What it is.
    pub text: String,
    /// In the last line: how the restart ended.
    pub ended: Option<HistoryEntry>,
    pub(super) tone: Tone,
}

/// Follows one restart.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The restart that is followed; none until there is one.
    id: Option<String>,
    /// Since when it is looked at.
    since: Option<Time>,
    told_unheard: bool,
    /// It was seen waiting: to be taken up, or in the queue.
    told_waiting: Option<String>,
    told_begun: bool,
    /// Since when the history has it.
    over: Option<Time>,
    told_ending: Option<Outcome>,
    /// What blocks, as told last.
    blocked: Option<(String, String)>,
    /// By uid.
    nodes: BTreeMap<String, Seen>,
    /// Uids of the pods whose end was told.
    done: BTreeSet<String>,
    /// How many were done when it was told last how much longer it takes.
    estimated: usize,
}

/// What was told last about a node.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    phase: Option<String>,
    message: Option<String>,
}

/// Where the followed restart is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// To come, or under way.
    Open,
    /// Over.
    Over(HistoryEntry),
    /// It will never begin: a sentence.
    Never(String),
}

impl Progress {
    /// Follows the restart with this id, or else the one under way, or else the next.
    pub(super) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// When to look again although nothing was told.
    pub(super) fn due_in(&self, now: Time) -> Option<u64> {
        if let Some(over) = self.over {
            return Some(over.plus(AFTERMATH).since(now).max(1));
        }
        let since = self.since?;
        let waits = !self.told_begun && !self.told_unheard;
        waits.then(|| since.plus(UNHEARD).since(now).max(1))
    }

    /// Takes a look: the changes, and where the restart is.
    pub(super) fn look(&mut self, view: &View, now: Time) -> (Vec<Line>, Stage) {
        let mut lines = Lines { now, lines: Vec::new() };
        let first = self.since.is_none();
        let since = *self.since.get_or_insert(now);
        if self.id.is_none() {
            let requested = view.requested().and_then(Result::ok);
            let next = view.restart().map(|restart| &restart.request);
            self.id = next.or(requested.as_ref()).map(|request| request.id.clone());
        }
        let Some(id) = self.id.clone() else {
            if first {
                lines.cluster(Tone::Plain, "no restart is under way; waiting for the next");
            }
            return (lines.lines, Stage::Open);
        };
        let restart = view.restart().filter(|restart| restart.request.id == id);
        if let Some(restart) = restart {
            self.under_way(view, restart, &mut lines);
            return (lines.lines, Stage::Open);
        }
        if let Some(entry) = view.history().iter().rev().find(|entry| entry.id == id) {
            self.pods_done(view, &id, &mut lines);
            let over = *self.over.get_or_insert(now);
            let shown = |pod: &Pod| pod.phase.is_some() && self.nodes.contains_key(&pod.uid);
            if view.pods.iter().any(shown) && now.since(over) < AFTERMATH {
                return (lines.lines, Stage::Open);
            }
            lines.over(entry);
            return (lines.lines, Stage::Over(entry.clone()));
        }
        if self.told_begun || self.is_lost(view, &id) {
            let message = format!(
                "restart {id} was taken up, and is neither under way nor in the history: it was \
                 there before the reconciler's first look, or too many have ended since"
            );
            return (lines.lines, Stage::Never(message));
        }
        self.before_it(view, &id, now.since(since), &mut lines);
        (lines.lines, Stage::Open)
    }

    fn is_lost(&self, view: &View, id: &str) -> bool {
        view.has_handled(id) && view.queued().is_none_or(|queued| queued.id != id)
    }

    fn before_it(&mut self, view: &View, id: &str, waited: u64, lines: &mut Lines) {
        let queued = view.queued().is_some_and(|queued| queued.id == id);
        let text = match (queued, view.restart()) {
            (true, Some(restart)) => {
                format!("restart {id} waits until restart {} is over", restart.request.id)
            }
            (true, None) => format!("restart {id} is about to begin"),
            (false, _) => format!("restart {id} is asked for"),
        };
        if self.told_waiting.as_ref() != Some(&text) {
            lines.cluster(Tone::Plain, &text);
            self.told_waiting = Some(text);
        }
        if !queued && !self.told_unheard && waited >= UNHEARD {
            self.told_unheard = true;
            let text = match view.status {
                None => UNSEEN.to_owned(),
                Some(_) => "nobody has taken it up yet: does stayput-reconciler run?".to_owned(),
            };
            lines.cluster(Tone::Heed, &text);
        }
    }

    fn under_way(&mut self, view: &View, restart: &Restart, lines: &mut Lines) {
        if !self.told_begun {
            self.told_begun = true;
            let request = &restart.request;
            let by = request.by.as_ref().map(|by| format!(", asked by {by}")).unwrap_or_default();
            let text = format!(
                "{} restart {} of {}{by}",
                request.strategy.as_str(),
                request.id,
                nodes(restart.members.len())
            );
            lines.cluster(Tone::Plain, &text);
        }
        self.pods_done(view, &restart.request.id, lines);
        for pod in &view.pods {
            let mut members = restart.members.iter();
            if members.any(|member| member.pod_uid == pod.uid && member.is_under_way()) {
                self.pod(view, pod, lines);
            }
        }
        self.block(view, lines);
        self.estimate(view, restart, lines);
        if let Some(ending) = &restart.ending
            && self.told_ending != Some(ending.outcome)
        {
            self.told_ending = Some(ending.outcome);
            let text = format!(
                "no further node is stopped; it ends as {}{}",
                ending.outcome.as_str(),
                after_colon(&ending.reason)
            );
            let tone = if ending.outcome == Outcome::Done { Tone::Plain } else { Tone::Bad };
            lines.cluster(tone, &text);
        }
    }

    /// How much longer it takes: with each node that is done, not with each minute that passes.
    fn estimate(&mut self, view: &View, restart: &Restart, lines: &mut Lines) {
        let done = restart.members.iter().filter(|member| member.step == Step::Finished).count();
        let status = view.status.as_ref();
        if let Some(estimate) = status.and_then(|status| status.report.estimate.as_ref())
            && done != self.estimated
        {
            self.estimated = done;
            lines.cluster(Tone::Plain, estimate);
        }
    }

    /// Nodes that are done: the pod says how.
    fn pods_done(&mut self, view: &View, id: &str, lines: &mut Lines) {
        for pod in &view.pods {
            let Some(last) = pod.last_restart.as_ref().filter(|last| last.id == id) else {
                continue;
            };
            if pod.phase.is_none() && self.done.insert(pod.uid.clone()) {
                let tone = if last.outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
                let text = format!(
                    "{} after {}{}",
                    last.outcome.as_str(),
                    spoken(last.seconds),
                    after_colon(&last.reason)
                );
                lines.node(&pod.node, tone, &text);
            }
        }
    }

    /// A node under way: its phase, and what it waits for.
    fn pod(&mut self, view: &View, pod: &Pod, lines: &mut Lines) {
        let phase = pod.phase.as_deref().and_then(|word| Phase::parse(word).ok());
        let Some(phase) = phase.filter(|phase| !phase.is_scheduled()) else { return };
        let report = view.report(&pod.node);
        let of_phase = report.filter(|report| report.phase.as_deref() == Some(phase.as_str()));
        let now = Seen {
            phase: Some(phase.as_str().to_owned()),
            message: of_phase.and_then(|report| report.message.clone()),
        };
        let before = self.nodes.entry(pod.uid.clone()).or_default();
        if *before == now {
            return;
        }
        let moved = before.phase != now.phase;
        let told = now.message.is_some() && before.message != now.message;
        if moved || told {
            let message = now.message.as_deref().unwrap_or_default();
            let tone = match of_phase.is_some_and(|report| report.blocked_by.is_some()) {
                true => Tone::Heed,
                false => Tone::Plain,
            };
            lines.node(&pod.node, tone, &format!("{}{}", phase.as_str(), after_colon(message)));
        }
        *before = now;
    }

    fn block(&mut self, view: &View, lines: &mut Lines) {
        let Some(status) = &view.status else { return };
        let report = &status.report;
        let now =
            report.blocked.clone().map(|rule| (rule, report.message.clone().unwrap_or_default()));
        if now == self.blocked {
            return;
        }
        match &now {
            Some((rule, message)) => {
                lines.cluster(Tone::Heed, &format!("blocked by {rule}{}", after_colon(message)));
            }
            None => lines.cluster(Tone::Plain, "goes on"),
        }
        self.blocked = now;
    }
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

struct Lines {
    now: Time,
    lines: Vec<Line>,
}

impl Lines {
    fn cluster(&mut self, tone: Tone, text: &str) {
        self.add(None, tone, text);
    }

    fn node(&mut self, node: &str, tone: Tone, text: &str) {
        self.add(Some(node.to_owned()), tone, text);
    }

    fn add(&mut self, node: Option<String>, tone: Tone, text: &str) {
        let line = Line { time: self.now, node, text: text.to_owned(), ended: None, tone };
        self.lines.push(line);
    }

    fn over(&mut self, entry: &HistoryEntry) {
        let text = format!(
            "restart {} {}: {} in {}{}",
            entry.id,
            entry.outcome.as_str(),
            nodes(entry.nodes as usize),
            spoken(entry.seconds),
            after_colon(&entry.reason)
        );
        let tone = if entry.outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
        self.cluster(tone, &text);
        if let Some(last) = self.lines.last_mut() {
            last.ended = Some(entry.clone());
        }
    }
}
