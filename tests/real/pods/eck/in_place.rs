//! What a person edits in an `Elasticsearch` arrives in the same pods: as `docs/operators.md` says, word for word,
//! and while ECK or the reconciler is killed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::edits::{Edits, Engine};
use super::stage::Stage;
use crate::pods::document::Document;
use crate::support::wait::{eventually, eventually_briefly};

pub(super) const BUFFER: &str = "indices.memory.index_buffer_size";
const TRIGGER: &str = "eck.k8s.elastic.co/restart-trigger=1";
const DOCUMENT: &str = "operators.md";
const MANAGER: &str = "From an Elasticsearch to pods with the manager";
const ONCE: &str = "Say once that edits are carried out in place";
const EDIT: &str = "Edit it";
const BACK: &str = "Go back";

#[test] // proves UPDATE-91, UPDATE-92
fn edits_arrive_in_the_same_pods_beside_eck() {
    const TEST: &str = "pods::eck::in_place::edits_arrive_in_the_same_pods_beside_eck";
    let Some(mut edits) = Edits::as_documented(TEST) else { return };
    edits.edit_as_documented();
    edits.trigger_while_the_reconciler_is_killed();
    edits.setting_while_eck_is_killed();
    edits.setting_while_both_are_killed();
    edits.go_back();
}

impl Edits {
    /// From an `Elasticsearch` without stayput to edits that are carried out in place.
    pub(super) fn as_documented(test: &str) -> Option<Self> {
        let mut stage = Stage::without_stayput(test)?;
        stage.read(MANAGER);
        stage.meet_new_pods();
        let edits = Self::begin(stage);
        edits.stage.read(ONCE);
        Some(edits)
    }

    /// Ends the client, and leaves the template as it was without stayput.
    pub(super) fn go_back(self) {
        let (stage, count) = self.assert_none_lost();
        assert!(count.writes.refused <= 3, "unanswered through the Service: {:?}", count.writes);
        stage.go_back();
    }

    /// "Edit it": a setting, a variable and a size.
    pub(super) fn edit_as_documented(&mut self) {
        let (stage, mut seen) = (&self.stage, Vec::new());
        let document = Document::read_all(&stage.fixture, DOCUMENT);
        document.section_with(EDIT, |_| {
            stage.until_content();
            seen.push(stage.engines_now());
        });
        let [before, set, varied, sized] = &seen[..] else { panic!("{} blocks", seen.len()) };
        for (name, was) in before {
            set[name].assert_restarted_in_place(was);
            varied[name].assert_restarted_in_place(&set[name]);
            let (was, is) = (&varied[name], &sized[name]);
            assert_eq!(is.pod.same_pod(), was.pod.same_pod());
            assert_eq!(is.pod.container, was.pod.container, "{name}");
            assert_ne!(is.started, was.started, "{name}");
            assert_eq!(is.pod.memory, "2Gi");
        }
        self.settle();
        self.assert_setting("node.attr.first", "yes");
        self.assert_variable("TEAM", "search");
    }

    pub(super) fn trigger_while_the_reconciler_is_killed(&mut self) {
        self.restarted("a restart trigger, the reconciler killed", |stage| {
            stage.fixture.run(&["annotate", "elasticsearch", "logs", TRIGGER]);
            stage.until_one_is_stopped();
            stage.fixture.kill_reconciler();
        });
    }

    /// ECK comes back when all is done, as after hours.
    fn setting_while_eck_is_killed(&mut self) {
        let known = self.engines.values().cloned().collect::<Vec<_>>();
        self.restarted("a setting, ECK killed", |stage| {
            stage.set(BUFFER, "16%");
            stage.until_one_is_stopped();
            stage.operator.kill();
            stage.until_all_restarted(&known);
            stage.operator.start_again();
        });
        self.assert_setting(BUFFER, "16%");
    }

    /// ECK comes back while a node is down.
    fn setting_while_both_are_killed(&mut self) {
        self.restarted("a setting, both killed", |stage| {
            stage.set(BUFFER, "17%");
            stage.until_one_is_stopped();
            stage.operator.kill();
            stage.fixture.kill_reconciler();
            stage.operator.start_again();
        });
        self.assert_setting(BUFFER, "17%");
    }

    /// Other processes in the same containers.
    pub(super) fn restarted(&mut self, what: &str, edit: impl FnOnce(&mut Stage)) {
        let pairs = self.row(what, edit);
        assert_eq!(pairs.len(), self.stage.nodes, "{pairs:#?}");
        for (was, is) in pairs {
            is.assert_restarted_in_place(&was);
        }
    }

    /// Checks that each engine has this variable, which its container may not have.
    pub(super) fn assert_variable(&self, name: &str, value: &str) {
        let line = format!("tr '\\0' '\\n' < /proc/$(pgrep --newest java)/environ | grep ^{name}=");
        for pod in self.engines.keys() {
            let seen = self.fixture().run(&["exec", pod, "--", "bash", "-c", &line]);
            assert_eq!(seen, format!("{name}={value}"), "{pod}");
        }
    }

    /// Checks what each engine says of a setting.
    pub(super) fn assert_setting(&self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let settings = self.stage.ask("_nodes/settings?flat_settings=true").expect("an answer");
        let mut nodes = settings["nodes"].as_object().expect("nodes").values();
        assert!(nodes.all(|node| node["settings"][name] == value), "{value}: {settings:#}");
    }
}

impl Stage {
    /// Runs what a section of the document says.
    fn read(&self, section: &str) {
        Document::read_all(&self.fixture, DOCUMENT).section(section);
    }

    /// "Go back": the template is as it was without stayput.
    fn go_back(&self) {
        self.read(BACK);
        eventually("ECK has taken the manager out of the template", || {
            let set = self.fixture.read("statefulsets/logs-es-default");
            (!set["spec"]["template"].to_string().contains("/stayput/")).then_some(())
        });
    }

    /// Edits a setting of the first node set.
    pub(super) fn set(&self, name: &str, value: &str) {
        let path = format!("/spec/nodeSets/0/config/{name}");
        self.edit(&json!([{ "op": "add", "path": path, "value": value }]));
    }

    /// Takes a setting out of the first node set.
    pub(super) fn unset(&self, name: &str) {
        let path = format!("/spec/nodeSets/0/config/{name}");
        self.edit(&json!([{ "op": "remove", "path": path }]));
    }

    /// Waits until each engine is another process than before.
    pub(super) fn until_all_restarted(&self, before: &[Engine]) {
        eventually("all engines were restarted", || {
            let now = self.started();
            let is_another = |was: &Engine| {
                now.get(&was.pod.name).is_some_and(|started| *started != was.started)
            };
            before.iter().all(is_another).then_some(())
        });
    }

    /// Waits until a node has left for its restart; returns the names of the others.
    pub(super) fn until_one_is_stopped(&self) -> BTreeSet<String> {
        eventually_briefly("a node is stopped", || {
            let names: BTreeSet<String> = self.started().into_keys().collect();
            (names.len() == self.nodes - 1).then_some(names)
        })
    }
}
