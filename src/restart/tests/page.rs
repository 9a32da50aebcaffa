//! A run as a page of text: a line for whatever changes, with the time since the beginning.

use std::collections::BTreeMap;

use super::world::{START, SimPod, World};
use crate::restart::{Action, Plan, annotation};

#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    pods: BTreeMap<String, String>,
    engine: String,
    waiting: BTreeMap<String, String>,
}

impl Page {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            pods: world.pods.iter().map(|pod| (pod.name.clone(), told(pod, world))).collect(),
            engine: world.engine.told(world.now),
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

    /// An action that shows nowhere else.
    pub(crate) fn action(&mut self, world: &mut World, action: &Action, how: &str) {
        let who = match action {
            Action::PatchPod { .. } if how.is_empty() => return,
            Action::Stop { .. } | Action::Start { .. } if how != " (lost)" && how != " (late)" => {
                return;
            }
            Action::Tell(_) => "event",
            _ => "do",
        };
        let said = match action {
            Action::Tell(event) => format!("{}: {}", event.reason.as_str(), event.message),
            other => super::world::in_words(other),
        };
        world.happened(who, format!("{said}{how}"));
    }

    /// Whatever differs from the last look.
    pub(crate) fn note(&mut self, world: &mut World, made: Option<&Plan>) {
        for (at, who, what) in std::mem::take(&mut world.lines) {
            self.line(at, who, &what);
        }
        let now = world.now;
        for pod in &world.pods {
            let line = told(pod, world);
            if self.pods.get(&pod.name) != Some(&line) {
                self.line(now, "pod", &format!("{} {line}", pod.name));
                self.pods.insert(pod.name.clone(), line);
            }
        }
        let engine = world.engine.told(now);
        if engine != self.engine {
            self.line(now, "engine", &engine);
            self.engine = engine;
        }
        let Some(made) = made else { return };
        let mut waiting = BTreeMap::new();
        for wait in &made.waiting {
            let who = wait.node.clone().unwrap_or_else(|| "all".into());
            let code = wait.code.as_str().to_owned();
            // While the ledger is written everybody waits for that, and it takes no time.
            if code == "recording" {
                waiting.insert(who.clone(), self.waiting.get(&who).cloned().unwrap_or_default());
                continue;
            }
            let known = self.waiting.get(&who) == Some(&code);
            if !known && code != "idle" {
                self.line(now, "wait", &format!("{who} {code}: {}", wait.sentence));
            }
            waiting.insert(who, code);
        }
        self.waiting.extend(waiting);
    }
}

/// A pod in a line.
pub(crate) fn told(pod: &SimPod, world: &World) -> String {
    if pod.gone {
        return "is gone".into();
    }
    let machine = &pod.machine;
    let mut line = machine.life().state().as_str().to_owned();
    if let Some(checksum) = machine.checksum() {
        line += &format!(" {checksum}");
    }
    if machine.up(world.now).is_some() && world.engine.is_joined(&pod.name) {
        line += ", in";
    }
    if machine.frozen {
        line += ", frozen";
    }
    if let Some(phase) = pod.annotations.get(annotation::PHASE) {
        line += &format!(", shows {phase}");
    }
    if let Some(last) = pod.annotations.get(annotation::LAST_RESTART) {
        let last: crate::restart::LastRestart = serde_json::from_str(last).unwrap();
        line += &format!(", last {} {}", last.id, last.outcome.as_str());
    }
    line
}
