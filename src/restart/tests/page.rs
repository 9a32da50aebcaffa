//! A run as a page of text: a line for whatever changes, with the time since the beginning.
//!
//! A wait is printed when its code or its message changes for a node, and not again while the node
//! itself stays as it is: a reason that comes back, or that differs only in a number, is not new.

use std::collections::{BTreeMap, BTreeSet};

use super::world::{START, SimPod, World};
use crate::{Action, Code, Plan, Waiting, annotation};

#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    pods: BTreeMap<String, String>,
    engine: String,
    /// The restart under way.
    restart: Option<String>,
    /// What each node waits for now.
    waiting: BTreeMap<String, String>,
    /// What was printed about each node since it last changed.
    printed: BTreeMap<String, BTreeSet<String>>,
}

impl Page {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            pods: world.pods.iter().map(|pod| (pod.name.clone(), describe(pod, world))).collect(),
            engine: world.engine.describe(world.now),
            ..Self::default()
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn line(&mut self, at: u64, who: &str, what: &str) {
        let tenths = (at - START) / 100;
        let (minutes, seconds) = (tenths / 600, tenths % 600);
        let clock = format!("{minutes}:{:02}.{}", seconds / 10, seconds % 10);
        self.text.push_str(format!("{clock:>8}  {who:<9}{what}").trim_end());
        self.text.push('\n');
    }

    /// A line of the script itself.
    pub(crate) fn script(&mut self, line: &str) {
        self.text.push_str(&format!("> {line}\n"));
    }

    /// An action whose effect no other line shows.
    pub(crate) fn action(&mut self, world: &mut World, action: &Action, how: &str) {
        let who = match action {
            Action::PatchPod { .. } if how.is_empty() => return,
            // As long as it lasts, it is tried at every look.
            Action::PatchPod { uid, .. }
                if world.by_uid(uid).is_some_and(|pod| pod.refuses_patches) =>
            {
                return;
            }
            Action::Drain { .. }
            | Action::Stop { .. }
            | Action::EndDrain { .. }
            | Action::Start { .. }
                if how != " (lost)" && how != " (late)" =>
            {
                return;
            }
            Action::RecordEvent(_) => "event",
            _ => "do",
        };
        let text = match action {
            Action::RecordEvent(event) => format!("{}: {}", event.reason.as_str(), event.message),
            other => super::world::describe_action(other),
        };
        world.happened(who, format!("{text}{how}"));
    }

    /// Prints whatever differs from the last call.
    pub(crate) fn note(&mut self, world: &mut World, made: Option<&Plan>) {
        for (at, who, what) in std::mem::take(&mut world.lines) {
            self.line(at, who, &what);
        }
        let now = world.now;
        let names: Vec<String> = world.pods.iter().map(|pod| pod.name.clone()).collect();
        let mut changed = Vec::new();
        for pod in &world.pods {
            let line = describe(pod, world);
            if self.pods.get(&pod.name) != Some(&line) {
                self.pods.insert(pod.name.clone(), line.clone());
                self.printed.remove(&pod.name);
                changed.push((pod.name.clone(), line));
            }
        }
        if names.len() > NAMED {
            changed = grouped(&names, changed);
        }
        for (who, line) in changed {
            self.line(now, "pod", &format!("{who} {line}"));
        }
        let engine = world.engine.describe(now);
        if engine != self.engine {
            self.line(now, "engine", &engine);
            self.engine = engine;
        }
        let restart = world.ledger().restart.as_ref().map(|restart| restart.request.id.clone());
        if restart != self.restart {
            self.restart = restart;
            self.printed.clear();
        }
        let Some(made) = made else { return };
        let changed = self.new_waits(&names, made);
        for (who, what) in grouped(&names, changed) {
            self.line(now, "wait", &format!("{who} {what}"));
        }
    }

    /// The waits of a plan that are to be printed.
    fn new_waits(&mut self, names: &[String], made: &Plan) -> Vec<(String, String)> {
        let mut changed = Vec::new();
        for wait in &made.waiting {
            // While the ledger is written every pod waits for that, and it takes no time.
            if wait.code == Code::Recording {
                continue;
            }
            let who = wait.node.clone().unwrap_or_else(|| "all".into());
            let what = format!("{}: {}", wait.code.as_str(), wait.message);
            let meaning = meaning(names, wait);
            if self.waiting.insert(who.clone(), meaning.clone()).as_ref() == Some(&meaning) {
                continue;
            }
            let is_new = self.printed.entry(who.clone()).or_default().insert(meaning);
            if is_new && wait.code != Code::Idle {
                changed.push((who, what));
            }
        }
        changed
    }
}

/// A wait without what differs from one moment to the next: numbers, and which nodes go first.
fn meaning(names: &[String], wait: &Waiting) -> String {
    let is_name = |word: &str| names.iter().any(|name| name == word);
    let in_queue = matches!(wait.code, Code::NotItsTurn | Code::AnotherInProgress);
    let is_separator = |one: char| !(one.is_alphanumeric() || "-_.".contains(one));
    let mut text = format!("{}:", wait.code.as_str());
    for word in wait.message.split(is_separator).filter(|word| !word.is_empty()) {
        let is_number = word.chars().all(|one| one.is_ascii_digit() || one == '.');
        if !(is_number || in_queue && is_name(word)) {
            text.push(' ');
            text.push_str(word);
        }
    }
    text
}

/// How many pods a page names one by one.
const NAMED: usize = 5;

/// Equal lines about several nodes become one, at the place of the first of them; where there are
/// many pods, a whole pool is printed by its name.
fn grouped(names: &[String], lines: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut groups: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (who, what) in lines {
        let of_each = what.replace(&who, "each");
        match groups.iter_mut().find(|(known, _)| *known == of_each) {
            Some((_, members)) => members.push((who, what)),
            None => groups.push((of_each, vec![(who, what)])),
        }
    }
    let line = |(of_each, members): (String, Vec<(String, String)>)| match &members[..] {
        [(who, what)] => (who.clone(), what.clone()),
        _ => {
            let members: Vec<String> = members.into_iter().map(|(who, _)| who).collect();
            let who = if names.len() > NAMED { by_pool(names, members) } else { members.join(" ") };
            (who, of_each)
        }
    };
    groups.into_iter().map(line).collect()
}

/// `data-a-*` for all of `data-a-0 data-a-1`.
fn by_pool(names: &[String], members: Vec<String>) -> String {
    let pool = |name: &str| name.rsplit_once('-').map_or(name, |(pool, _)| pool).to_owned();
    let size = |of: &str, names: &[String]| names.iter().filter(|name| pool(name) == of).count();
    let mut words: Vec<String> = Vec::new();
    for name in &members {
        let own = pool(name);
        let all = size(&own, names);
        let is_whole = all > 1 && size(&own, &members) == all;
        let word = if is_whole { format!("{own}-*") } else { name.clone() };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// A pod in a line.
pub(crate) fn describe(pod: &SimPod, world: &World) -> String {
    if pod.gone {
        return "is gone".into();
    }
    if pod.living.is_pending {
        return "waits for a Kubernetes node".into();
    }
    let machine = &pod.machine;
    let mut line = machine.life().state().as_str().to_owned();
    if let Some(checksum) = machine.checksum() {
        line += &format!(" {checksum}");
    }
    if machine.up(world.now).is_some() && world.engine.is_joined(&pod.name) {
        line += ", in";
    }
    if pod.living.is_read {
        line += &format!(", {}", crate::tests::world::template::revision(&pod.living.actual));
        if let Some(ahead) = pod.living.ahead() {
            line += &format!(", labelled {}", ahead.revision);
        }
    }
    if pod.living.is_without_container() {
        line += ", no container";
    }
    if machine.life().drains_ahead() {
        line += ", drains";
    }
    if machine.frozen {
        line += ", frozen";
    }
    if let Some(phase) = pod.annotations.get(annotation::PHASE) {
        line += &format!(", shows {phase}");
    }
    if let Some(last) = pod.annotations.get(annotation::LAST_RESTART) {
        let last: crate::LastRestart = serde_json::from_str(last).unwrap();
        line += &format!(", last {} {}", last.id, last.outcome.as_str());
    }
    line
}
