//! A run as a page of text: a line for whatever changes, with the time since the beginning.

use std::collections::BTreeMap;

use super::world::{START, SimPod, World};
use crate::{Action, Plan, annotation};

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
            Action::RecordEvent(_) => "event",
            _ => "do",
        };
        let said = match action {
            Action::RecordEvent(event) => format!("{}: {}", event.reason.as_str(), event.message),
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
        let names: Vec<String> = world.pods.iter().map(|pod| pod.name.clone()).collect();
        let mut changed = Vec::new();
        for pod in &world.pods {
            let line = told(pod, world);
            if self.pods.get(&pod.name) != Some(&line) {
                self.pods.insert(pod.name.clone(), line.clone());
                changed.push((pod.name.clone(), line));
            }
        }
        for (who, line) in together(&names, changed) {
            self.line(now, "pod", &format!("{who} {line}"));
        }
        let engine = world.engine.told(now);
        if engine != self.engine {
            self.line(now, "engine", &engine);
            self.engine = engine;
        }
        let Some(made) = made else { return };
        let mut waiting = BTreeMap::new();
        let mut changed = Vec::new();
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
                changed.push((who.clone(), format!("{code}: {}", wait.message)));
            }
            waiting.insert(who, code);
        }
        for (who, what) in together(&names, changed) {
            self.line(now, "wait", &format!("{who} {what}"));
        }
        self.waiting.extend(waiting);
    }
}

/// How many pods a page names one by one.
const FEW: usize = 5;

/// Where there are many pods, those of whom the same is to be said share a line, in the order of the
/// first of them, and a whole pool is called by its name.
fn together(names: &[String], said: Vec<(String, String)>) -> Vec<(String, String)> {
    if names.len() <= FEW {
        return said;
    }
    let mut lines: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (who, what) in said {
        let of_anybody = what.replace(&who, "each");
        match lines.iter_mut().find(|(known, _)| *known == of_anybody) {
            Some((_, those)) => those.push((who, what)),
            None => lines.push((of_anybody, vec![(who, what)])),
        }
    }
    let in_a_line = |(of_anybody, those): (String, Vec<(String, String)>)| match &those[..] {
        [(who, what)] => (who.clone(), what.clone()),
        _ => {
            let those = those.into_iter().map(|(who, _)| who).collect();
            (by_pool(names, those), of_anybody)
        }
    };
    lines.into_iter().map(in_a_line).collect()
}

/// `data-a-*` for all of `data-a-0 data-a-1`.
fn by_pool(names: &[String], those: Vec<String>) -> String {
    let pool = |name: &str| name.rsplit_once('-').map_or(name, |(pool, _)| pool).to_owned();
    let size = |of: &str, names: &[String]| names.iter().filter(|name| pool(name) == of).count();
    let mut words: Vec<String> = Vec::new();
    for name in &those {
        let own = pool(name);
        let all = size(&own, names);
        let whole = all > 1 && size(&own, &those) == all;
        let word = if whole { format!("{own}-*") } else { name.clone() };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
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
        let last: crate::LastRestart = serde_json::from_str(last).unwrap();
        line += &format!(", last {} {}", last.id, last.outcome.as_str());
    }
    line
}
